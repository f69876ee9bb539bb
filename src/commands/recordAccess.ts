/** RecordAccess: leaves the record of who saw what (decisions 11). What can't be recorded is not shown. */
import { randomUUID } from 'node:crypto';
import { type AccessEvent, type AccessRequest, accessStream } from '../domain/access.js';
import type { Caller, EventStore, Position } from '../ports/eventStore.js';
import { recordable } from './context.js';
import { append } from './transact.js';

/** Who asks, and under which request. */
export interface Asker {
  readonly by: Caller;
  readonly requestId?: string;
}

/** An export or a repair under way. */
export interface BegunExport {
  /** Records its end; again it does nothing. @throws UnavailableError */
  end(count: number, position: Position | null, complete: boolean): Promise<void>;
}

/** Appends the records. Everything throws UnavailableError, LogSealedError. */
export interface AccessRecorder {
  /** Before an answer with `count` records goes out. */
  seen(asker: Asker, request: AccessRequest, count: number): Promise<void>;
  /** Before the first record of an export goes out, or the first document is put right. */
  begin(asker: Asker, request: AccessRequest): Promise<BegunExport>;
}

/** A recorder. `now`: ISO 8601, UTC, milliseconds. */
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
    seen: async (asker, request, count) =>
      record({ type: 'RecordsSeen', data: { ...request, count } }, asker, asker.requestId ?? randomUUID()),
    async begin(asker, request) {
      const exportId = randomUUID();
      const correlationId = asker.requestId ?? exportId;
      await record({ type: 'ExportBegun', data: { ...request, export_id: exportId } }, asker, correlationId);
      let ended = false;
      return {
        async end(count, position, complete) {
          if (ended) return;
          ended = true;
          await record(
            { type: 'ExportEnded', data: { export_id: exportId, count, position, complete } },
            asker,
            correlationId,
          );
        },
      };
    },
  };
}
