// The protocol of wire.py, for node.
import readline from "node:readline";

const CHUNK = 1000;
const FAILS_EVERY = 20;
const REPORT_EVERY = 25;
const LOAD_STEP = 20;

export const now = () => (performance.timeOrigin + performance.now()) / 1000;
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const calls = {
  calls: 0, successes: 0, first: 0, last: 0, latencies: [], failed: new Set(),
  succeed() {
    this.last = now();
    this.first ||= this.last;
    this.calls++;
    this.successes++;
  },
  arrive(sent) {
    this.latencies.push(1000 * (now() - sent));
    this.succeed();
  },
  mustFail(number) {
    this.first ||= now();
    this.calls++;
    if (number % FAILS_EVERY !== 0 || this.failed.has(number)) return false;
    this.failed.add(number);
    return true;
  },
  finish() {
    this.successes++;
    this.last = now();
  },
  report() {
    const { calls, successes, first, last } = this;
    process.stdout.write(JSON.stringify({ calls, successes, first, last }) + "\n");
  },
};

const unread = [], readers = [];
const input = readline.createInterface({ input: process.stdin });
input.on("close", () => process.exit(0));
input.on("line", (line) => (readers.length ? readers.shift()(line) : unread.push(line)));
const read = () => (unread.length ? Promise.resolve(unread.shift()) : new Promise((resolve) => readers.push(resolve)));

export async function serveWorker() {
  process.stdout.write("ready\n");
  await read();
  let reported = -1;
  setInterval(() => {
    if (calls.calls + calls.successes === reported) return;
    reported = calls.calls + calls.successes;
    calls.report();
  }, REPORT_EVERY);
  read().then(() => {
    calls.report();
    process.stdout.write(JSON.stringify({ latencies: calls.latencies }) + "\n", () => process.exit(0));
  });
}

export async function serveProducer({ one, bulk, stamp, flaky }) {
  const chunks = async (send, n) => {
    for (let begin = 0; begin < n; begin += CHUNK) await send(begin, Math.min(CHUNK, n - begin));
  };
  const verbs = {
    one: async (n) => { for (let i = 0; i < n; i++) await one(); },
    bulk: (n) => chunks((_, size) => bulk(size), n),
    flaky: (n) => chunks((begin, size) => flaky(Array.from({ length: size }, (_, i) => begin + i)), n),
    paced: async (n, rate) => {
      for (let i = 0; i < n; i++) {
        await sleep((1000 * (0.5 + Math.random())) / rate);
        await stamp(now());
      }
    },
    load: async (rate, seconds) => {
      const begin = now();
      for (let sent = 0, passed; (passed = now() - begin) < seconds; await sleep(LOAD_STEP)) {
        const due = Math.min(Math.floor(rate * passed) - sent, CHUNK);
        if (due > 0) { await bulk(due); sent += due; }
      }
    },
  };
  process.stdout.write("ready\n");
  for (;;) {
    const [verb, ...numbers] = (await read()).split(" ");
    const begin = now();
    await verbs[verb](...numbers.map(Number));
    process.stdout.write(JSON.stringify({ seconds: now() - begin }) + "\n");
  }
}
