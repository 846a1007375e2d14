// events.py, for node.
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export const SLOTS = Number(process.env.FAULTS_SLOTS ?? 4);
export const URL = process.env.FAULTS_URL;
const file = fs.openSync(process.env.FAULTS_EVENTS ?? "/dev/null", "a");
let runs = 0;

export function write(event, fields = {}) {
  const at = (performance.timeOrigin + performance.now()) / 1000;
  fs.writeSync(file, JSON.stringify({ event, pid: process.pid, at, ...fields }) + "\n");
}

export async function work({ number, seconds }, attempt, signal) {
  const run = `${process.pid}.${++runs}`;
  write("start", { job: number, run, attempt });
  try {
    await sleep(1000 * seconds, undefined, { signal });
  } catch (error) {
    write("abort", { job: number, run });
    throw error;
  }
  write("end", { job: number, run });
  return run;
}

export const jobs = () => JSON.parse(fs.readFileSync(0, "utf8")).map(([number, seconds]) => ({ number, seconds }));
