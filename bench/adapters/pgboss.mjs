// pg-boss. BENCH_MODE=work: boss.work() with notifications and bursts; otherwise a loop of fetch and complete.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { calls, serveProducer, serveWorker, sleep } from "./wire.mjs";

const require = createRequire(process.env.BENCH_NODE_MODULES + "/package.json");
const { PgBoss } = await import(pathToFileURL(require.resolve("pg-boss")).href);

const QUEUE = "bench";
const batchSize = Number(process.env.BENCH_BATCH ?? 1000);
const listens = process.env.BENCH_MODE === "work";
const role = process.argv[2];

async function handle(data) {
  if (data.number !== undefined) {
    if (calls.mustFail(data.number)) throw new Error("first attempt");
    await sleep(1);
    calls.finish();
  } else if (data.sent) calls.arrive(data.sent);
  else calls.succeed();
}

async function fetchLoop(boss) {
  for (;;) {
    const jobs = await boss.fetch(QUEUE, { batchSize });
    if (!jobs.length) { await sleep(20); continue; }
    const results = await Promise.allSettled(jobs.map((job) => handle(job.data)));
    const ids = (status) => jobs.filter((_, i) => results[i].status === status).map((job) => job.id);
    const [succeeded, failed] = [ids("fulfilled"), ids("rejected")];
    if (succeeded.length) await boss.complete(QUEUE, succeeded);
    if (failed.length) await boss.fail(QUEUE, failed);
  }
}

const boss = new PgBoss({
  connectionString: process.env.BENCH_URL, max: 10, schedule: false, supervise: role === "worker",
  ...(listens ? { useListenNotify: true } : {}),
});
boss.on("error", (error) => console.error(String(error)));
await boss.start();

if (role === "setup") {
  await boss.createQueue(QUEUE, { retryLimit: 5, retryDelay: 1, notify: listens });
  await boss.stop({ graceful: false });
  process.exit(0);
} else if (role === "worker") {
  await serveWorker();
  const options = { batchSize, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  if (listens) await boss.work(QUEUE, options, async (jobs) => { for (const job of jobs) await handle(job.data); });
  else await fetchLoop(boss);
} else {
  const data = { account: "acct-7", cents: 500 };
  await serveProducer({
    one: () => boss.send(QUEUE, data),
    bulk: (n) => boss.insert(QUEUE, Array.from({ length: n }, () => ({ data }))),
    stamp: (sent) => boss.send(QUEUE, { sent }),
    flaky: (numbers) => boss.insert(QUEUE, numbers.map((number) => ({ data: { number } }))),
  });
}
