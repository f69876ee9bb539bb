/** Records access (docs/support.md#access-records). Data is not shown where its access can't be recorded. */
import { type AccessEvent, type AccessRequest, accessStream } from '../domain/access.js';
import { randomUUID } from '../lib/world.js';
import type { Caller, EventStore, Position } from '../ports/eventStore.js';
import { appendEvent } from './transact.js';

export interface Asker {
  readonly by: Caller;
  readonly requestId?: string;
}

/** An export, a repair or a rebuild in progress. */
export interface StartedOperation {
  /** Records the end of the operation; a second call does nothing. @throws UnavailableError */
  end(count: number, position: Position | null, complete: boolean): Promise<void>;
}

/** All methods throw UnavailableError and LogSealedError. */
export interface AccessRecorder {
  /** Records an answer with `count` records, before it goes out. */
  shown(asker: Asker, request: AccessRequest, count: number): Promise<void>;
  /** Records an operation, before it shows its first record or changes anything. */
  start(asker: Asker, request: AccessRequest): Promise<StartedOperation>;
}

/** `now`: ISO 8601, UTC, milliseconds. */
export function accessRecorder(events: EventStore, now: () => string): AccessRecorder {
  const record = async (event: AccessEvent, { by, requestId }: Asker, correlationId: string): Promise<void> => {
    const at = now();
    const request = requestId === undefined ? {} : { requestId };
    await appendEvent(events, accessStream(at), event, 'any', { by, now: at, correlationId, ...request });
  };
  return {
    shown: async (asker, request, count) =>
      record({ type: 'RecordsShown', data: { ...request, count } }, asker, asker.requestId ?? randomUUID()),
    async start(asker, request) {
      const operation_id = randomUUID();
      const correlationId = asker.requestId ?? operation_id;
      await record({ type: 'OperationStarted', data: { ...request, operation_id } }, asker, correlationId);
      let ended = false;
      return {
        async end(count, position, complete) {
          if (ended) return;
          ended = true;
          const data = { operation_id, count, position, complete };
          await record({ type: 'OperationEnded', data }, asker, correlationId);
        },
      };
    },
  };
}
