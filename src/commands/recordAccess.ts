/** Records access (docs/decisions.md#access-records). What can't be recorded is not shown. */
import { randomUUID } from 'node:crypto';
import { type AccessEvent, type AccessRequest, accessStream } from '../domain/access.js';
import type { Caller, EventStore, Position } from '../ports/eventStore.js';
import { recordable } from './context.js';
import { append } from './transact.js';

export interface Asker {
  readonly by: Caller;
  readonly requestId?: string;
}

/** An export, a repair or a rebuild under way. */
export interface StartedOperation {
  /** Records its end; again it does nothing. @throws UnavailableError */
  end(count: number, position: Position | null, complete: boolean): Promise<void>;
}

/** Everything throws UnavailableError, LogSealedError. */
export interface AccessRecorder {
  /** Before an answer with `count` records goes out. */
  shown(asker: Asker, request: AccessRequest, count: number): Promise<void>;
  /** Before an operation shows its first record or changes anything. */
  start(asker: Asker, request: AccessRequest): Promise<StartedOperation>;
}

/** `now`: ISO 8601, UTC, milliseconds. */
export function accessRecorder(events: EventStore, now: () => string): AccessRecorder {
  const record = async (event: AccessEvent, { by, requestId }: Asker, correlationId: string): Promise<void> => {
    const at = now();
    const recorded = recordable([event], {
      commandId: randomUUID(),
      correlationId,
      by,
      now: at,
      ...(requestId === undefined ? {} : { requestId }),
    });
    await append(events, accessStream(at), recorded, 'any');
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
