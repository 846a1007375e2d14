// pg-boss: the shortest heartbeat and supervision that it accepts. Without notifications, which make it poll less often.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { SLOTS, URL, jobs, work } from "./events.mjs";

const require = createRequire(process.env.FAULTS_NODE_MODULES + "/package.json");
const { PgBoss } = await import(pathToFileURL(require.resolve("pg-boss")).href);

const QUEUE = "work";
const role = process.argv[2];
const boss = new PgBoss({
  connectionString: URL, max: 10, schedule: false, supervise: role === "worker",
  superviseIntervalSeconds: 1, monitorIntervalSeconds: 1,
});
boss.on("error", (error) => console.error(new Date().toISOString(), String(error)));
await boss.start();

if (role === "setup") {
  await boss.createQueue(QUEUE, { retryLimit: 25, retryDelay: 0, heartbeatSeconds: 10 });
} else if (role === "enqueue") {
  await boss.insert(QUEUE, jobs().map((data) => ({ data })));
} else {
  const options = {
    batchSize: 1, localConcurrency: SLOTS, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true,
    includeMetadata: true, heartbeatRefreshSeconds: 3,
  };
  await boss.work(QUEUE, options, ([job]) => work(job.data, job.retryCount, job.signal));
}
if (role !== "worker") {
  await boss.stop({ graceful: false });
  process.exit(0);
}
