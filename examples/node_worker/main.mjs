// Handlers, and a worker that runs them: node main.mjs
import { setTimeout as sleep } from "node:timers/promises";
import { Fail, Worker } from "./worker.mjs";

const tasks = {
  async charge({ account, cents }) {
    if (cents < 0) throw new Fail("a charge is positive");
    return `${account} paid ${cents}`;
  },
  async wait({ seconds }, { progress, signal }) {
    await progress(0, seconds, "waiting");
    await sleep(1000 * seconds, null, { signal });
  },
  async stumble(_, { job }) {
    if (job.attempt < 2) throw new Error("not yet");
    return job.attempt;
  },
};

await new Worker(tasks, { lease: Number(process.env.LEASE ?? 30) }).run();
