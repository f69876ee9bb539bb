import { sleep } from '../world.js';

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await sleep(ms, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
