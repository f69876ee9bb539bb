import type { StartedOperation } from '../../commands/recordAccess.js';

/** Runs work whose start is recorded, and records its end. `shown`: how many records the result shows. */
export async function recordedWork<T>(
  record: StartedOperation,
  work: () => Promise<T>,
  shown: (result: T) => number = () => 1,
): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // Where the end can't be recorded, a record without an end shows the failure, too.
    await record.end(0, null, false).catch(() => undefined);
    throw error;
  }
  await record.end(shown(result), null, true);
  return result;
}
