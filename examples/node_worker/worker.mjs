// A worker in Node.js, without packages: it claims jobs from a gateway (`relet gateway`), runs them, and settles them.
// docs/gateway.md describes the protocol. Set RELET_GATEWAY to its URL, or to several, and RELET_GATEWAY_TOKEN.
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const now = () => performance.now() / 1000; // seconds, monotonic
const WAIT = 20; // seconds that a claim waits for jobs
const claimOf = (token) => token.slice(0, 24); // the part that names the claim

export class Fail extends Error {} // thrown by a handler: do not retry

export class Worker {
  constructor(tasks, { slots = 10, lease = 30, queues } = {}) {
    this.urls = process.env.RELET_GATEWAY.split(/\s+/);
    this.tasks = tasks; // by name: async (payload, { job, signal, progress }) => result
    Object.assign(this, { slots, lease, queues, stopping: false, over: false });
    this.worker = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
    this.running = new Map(); // by job id and lease token, until the end of the attempt is stored
    this.ended = new Map(); // outcomes that are not stored yet, by the same keys
    this.claims = new Set(); // claims that were not answered yet
  }

  async call(verb, body, wait = 0) {
    try {
      const answer = await fetch(`${this.urls[0]}/worker/v1/${verb}`, {
        method: "POST",
        headers: { authorization: `Bearer ${process.env.RELET_GATEWAY_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ worker: this.worker, ...body }),
        signal: AbortSignal.timeout(1000 * (wait + Math.min(this.lease / 3, 10))),
      });
      const found = await answer.json();
      if (!answer.ok) throw Object.assign(new Error(found.detail), { status: answer.status });
      return found;
    } catch (error) {
      if (!error.status || error.status >= 500) this.urls.push(this.urls.shift()); // the next gateway, if there is one
      throw error;
    }
  }

  // Repeats a request until it is answered: every request of the protocol may be repeated.
  async insist(verb, body, wait = 0, again = {}) {
    for (let failures = 0; ; failures++) {
      try {
        return await this.call(verb, failures ? { ...body, ...again } : body, wait);
      } catch (error) {
        console.error(`${verb}: ${error.message}`);
        if ((error.status < 500 && error.status !== 429) || (this.stopping && failures > 20)) throw error;
        await sleep(1000 * Math.random() * Math.min(0.05 * 2 ** failures, 1));
      }
    }
  }

  hello() {
    const { slots, lease, queues, stopping } = this;
    const about = { host: hostname(), pid: process.pid, version: "node", tasks: Object.keys(this.tasks) };
    return this.call("hello", { ...about, slots, lease, queues, stopping, running: this.running.size });
  }

  async run() {
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => this.stop());
    await this.insist("hello", {});
    console.log(`worker ${this.worker} started`);
    const loops = [[0.005, this.settle], [this.lease / 3, this.renew], [5, this.hello]].map(([every, step]) => this.repeat(every, step));
    while (!this.stopping) await this.claim();
    while (this.running.size || this.ended.size) await sleep(20);
    this.over = true;
    await Promise.all(loops);
    await this.call("goodbye", {}).catch(() => {});
  }

  stop() {
    this.stopping = true;
    this.call("interrupt", {}).catch(() => {}); // ends the wait of a claim
  }

  async repeat(seconds, step) {
    for (let due = 0; !this.over; await sleep(5)) {
      if (now() < due) continue;
      due = now() + seconds;
      await step.call(this).catch((error) => console.error(error.message));
    }
  }

  async claim(alone = false) {
    const free = this.slots - this.running.size;
    if (free <= 0) return sleep(5);
    const wait = alone ? 0 : this.running.size ? 1 : WAIT; // a slot may become free meanwhile
    const [token, tasks, sent] = [randomUUID(), Object.keys(this.tasks), now()];
    const body = { token, tasks, want: free, slots: free, lease: this.lease, queues: this.queues, wait, alone };
    this.claims.add(claimOf(token));
    const found = await this.insist("claim", body, wait, { again: true });
    // The leases began after the request was sent, and after the gateway had waited.
    for (const job of found.jobs) this.start(job, sent + (found.waited ?? 0) + job.lease);
    this.claims.delete(claimOf(token));
    if (alone) while (this.running.size) await sleep(20);
    else if (found.quarantined && !this.running.size) await this.claim(true); // it has lost two workers: it runs alone
  }

  async start(job, deadline) {
    const [key, lease, abort] = [`${job.id} ${job.token}`, { id: job.id, token: job.token }, new AbortController()];
    const { signal } = abort;
    const attempt = { job, lease, deadline, abort, lost: false };
    this.running.set(key, attempt);
    const progress = (done, total, note) => this.call("progress", { reports: [{ ...lease, done, total, note }] });
    const timer = job.timeout && setTimeout(() => abort.abort("timeout"), 1000 * job.timeout);
    const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error(signal.reason))));
    let outcome = { outcome: "released", reason: "started too late" };
    try {
      if (now() < deadline) {
        const result = await Promise.race([this.tasks[job.task](job.payload, { job, signal, progress }), aborted]);
        outcome = { outcome: "succeeded", result: result ?? null };
      }
    } catch (error) {
      const raised = { outcome: "raised", error: `${error.stack}`, error_type: error.name, fatal: error instanceof Fail };
      outcome = ["cancel", "pause"].includes(signal.reason) ? { outcome: "released" } : raised;
    }
    clearTimeout(timer);
    if (attempt.lost) this.running.delete(key);
    else this.ended.set(key, { ...lease, ...outcome });
  }

  async renew() {
    const [sent, claims, held] = [now(), new Set(this.claims), [...this.running.values()]];
    const leases = held.map(({ job, lease }) => ({ ...lease, version: job.version }));
    const found = await this.call("renew", { leases, lease: this.lease });
    const of = ({ id, token }) => this.running.get(`${id} ${token}`);
    for (const one of found.renewed) if (of(one)) of(one).deadline = sent + of(one).job.lease;
    for (const one of [...found.renewed, ...found.locked]) if (one.request) of(one)?.abort.abort(one.request);
    for (const one of found.lost)
      if (of(one) && one.reason !== "settled") Object.assign(of(one), { lost: true }).abort.abort(one.reason);
    for (const { id, token } of found.unknown) // jobs of a claim whose answer was lost
      if (!claims.has(claimOf(token)) && !this.claims.has(claimOf(token)) && !of({ id, token }))
        this.ended.set(`${id} ${token}`, { id, token, outcome: "released", reason: "its claim was not answered" });
  }

  async settle() {
    const batch = [...this.ended].slice(0, 1000);
    if (!batch.length) return;
    const { settled } = await this.insist("settle", { outcomes: batch.map(([, outcome]) => outcome) });
    for (const [index, { again, refused }] of settled.entries()) {
      const [key, { id, token }] = batch[index];
      if (again) continue; // a lock was not free
      this.ended.delete(key);
      if (refused) this.ended.set(key, { id, token, outcome: "raised", error: `refused: ${refused}`, fatal: true });
      else this.running.delete(key);
    }
  }
}
