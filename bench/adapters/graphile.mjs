// graphile-worker. BENCH_LOCAL_QUEUE=0: its defaults; otherwise a local queue of that size and batched completion.
import { createRequire } from "node:module";
import { calls, serveProducer, serveWorker, sleep } from "./wire.mjs";

const require = createRequire(process.env.BENCH_NODE_MODULES + "/package.json");
const { Logger, makeWorkerUtils, run, runMigrations } = require("graphile-worker");

const size = Number(process.env.BENCH_LOCAL_QUEUE ?? 500);
const batched = { localQueue: { size }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const logger = new Logger(() => (level, message) => {
  if (level === "error" && !message.includes("first attempt")) console.error(message);
});
const preset = {
  worker: {
    connectionString: process.env.BENCH_URL,
    concurrentJobs: Number(process.env.BENCH_CONCURRENCY ?? 24),
    maxPoolSize: 10,
    pollInterval: 1000,
    logger,
    ...(size ? batched : {}),
  },
};
const taskList = {
  noop: async () => calls.succeed(),
  stamp: async ({ sent }) => calls.arrive(sent),
  flaky: async ({ number }) => {
    if (calls.mustFail(number)) throw new Error("first attempt");
    await sleep(1);
    calls.finish();
  },
};

const role = process.argv[2];
if (role === "setup") {
  await runMigrations({ preset });
  process.exit(0);
} else if (role === "worker") {
  await serveWorker();
  await run({ preset, noHandleSignals: true, taskList });
} else {
  const utils = await makeWorkerUtils({ preset });
  const payload = { account: "acct-7", cents: 500 };
  await serveProducer({
    one: () => utils.addJob("noop", payload),
    bulk: (n) => utils.addJobs(Array.from({ length: n }, () => ({ identifier: "noop", payload }))),
    stamp: (sent) => utils.addJob("stamp", { sent }),
    flaky: (numbers) => utils.addJobs(numbers.map((number) => ({ identifier: "flaky", payload: { number } }))),
  });
}
