const never = new Int32Array(new SharedArrayBuffer(4));

export function blockThread(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
