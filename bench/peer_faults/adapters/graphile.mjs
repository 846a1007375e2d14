// graphile-worker. It tells the id of its pool, so that its supervisor can unlock the jobs of a worker that has ended.
import { createRequire } from "node:module";
import { SLOTS, URL, jobs, work, write } from "./events.mjs";

const require = createRequire(process.env.FAULTS_NODE_MODULES + "/package.json");
const { makeWorkerUtils, run, runMigrations } = require("graphile-worker");
const EventEmitter = require("node:events");

const events = new EventEmitter();
events.on("pool:create", ({ workerPool }) => write("pool", { id: workerPool.id }));
const preset = {
  worker: {
    connectionString: URL, concurrentJobs: SLOTS, maxPoolSize: 10, pollInterval: 1000, events,
    minResetLockedInterval: 1000, maxResetLockedInterval: 2000,
  },
};
const taskList = { work: (payload, { job }) => work(payload, job.attempts) };

const role = process.argv[2];
if (role === "setup") {
  await runMigrations({ preset });
  process.exit(0);
} else if (role === "enqueue") {
  const utils = await makeWorkerUtils({ preset });
  await utils.addJobs(jobs().map((payload) => ({ identifier: "work", payload, maxAttempts: 25 })));
  process.exit(0);
} else {
  const runner = await run({ preset, taskList });
  await runner.promise;
}
