import { UnavailableError } from '../../ports/unavailable.js';
import { deferred } from '../../lib/async/deferred.js';

/**
 * Waits for a subscription to open: the client may search for a node for most of a minute. A subscription that opens
 * later is ended.
 * @throws UnavailableError after `timeoutMs`, or when `stop` is aborted; the opening's own errors
 */
export async function opened<T extends { end(): void }>(
  opening: Promise<T>,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<T> {
  const { promise, reject } = deferred<never>();
  const leave = (): void => {
    reject(new UnavailableError(`EventStoreDB did not answer within ${timeoutMs} ms, or reading has ended`));
    opening.then(
      (late) => late.end(),
      () => undefined,
    );
  };
  if (stop.aborted) leave();
  const timer = setTimeout(leave, timeoutMs);
  stop.addEventListener('abort', leave);
  try {
    return await Promise.race([opening, promise]);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', leave);
  }
}
