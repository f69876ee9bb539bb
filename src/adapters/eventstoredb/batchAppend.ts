/** Sends many appends concurrently over one long call; correlation ids match the answers. */
import { randomUUID } from 'node:crypto';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { type InFlight, inFlight } from '../../lib/inFlight.js';
import { type ExpectedRevision, EventTooLargeError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Connection, Heard } from './connection.js';
import { AccessRefusedError, failureOf, StreamDeletedError } from './failures.js';
import type { EncodedEvent } from './records.js';
import { append } from './requests.js';

export type AppendAnswer =
  /** `commit` is absent where a repeat's events can't be read any more. */
  | { readonly kind: 'stored'; readonly revision: number; readonly commit: string | undefined }
  /** `actual` is -1 for a stream without events. */
  | { readonly kind: 'conflict'; readonly actual: number };

export interface Appender {
  /**
   * Sends one append.
   * @throws UnavailableError, also after a timeout: then the append may still be stored; EventTooLargeError;
   * StreamDeletedError
   */
  send(stream: string, events: readonly EncodedEvent[], expected: ExpectedRevision): Promise<AppendAnswer>;
}

/** Characters of a UUID before its last part, which are random but for its version. */
const TAG_LENGTH = 24;

const correlationOf = (tag: string, number: number): string => `${tag}${number.toString(16).padStart(12, '0')}`;

type Calling = Heard<ClientDuplexStream<BatchAppendReq, BatchAppendResp>>;

interface Pending {
  /**
   * Start of the correlation id, which ends with the append's number: a late answer must match no later append with
   * that number.
   */
  readonly tag: string;
  readonly stream: string;
  readonly bytes: number;
  readonly settle: (answer: AppendAnswer) => void;
  readonly fail: (error: Error) => void;
}

interface Session {
  readonly calling: Promise<Calling>;
  readonly pending: InFlight<Pending>;
}

export function openAppender(connection: Connection, timeoutMs: number): Appender {
  let session: Session | undefined;

  function open(): Session {
    const pending = inFlight<Pending>();
    const opened: Session = {
      pending,
      calling: connection.call((client, metadata, options) => client.batchAppend(metadata, options)),
    };
    const end = (error: unknown): void => {
      if (session === opened) session = undefined;
      for (const { stream, fail } of pending.clear()) fail(failureOf(error, { stream, writes: true }));
    };
    opened.calling.then(({ call }) => {
      call.on('data', (response: BatchAppendResp) => answered(pending, response));
      call.on('error', end);
      call.on('end', () => end(new UnavailableError('EventStoreDB ended the call', { outcomeUnknown: true })));
    }, end);
    return opened;
  }

  return {
    async send(stream, events, expected) {
      const used = (session ??= open());
      const tag = randomUUID().slice(0, TAG_LENGTH);
      const since = performance.now();
      return new Promise<AppendAnswer>((resolve, reject) => {
        const timer = setTimeout(() => {
          used.pending.take(number);
          reject(new UnavailableError(`EventStoreDB did not answer within ${timeoutMs} ms`, { outcomeUnknown: true }));
          used.calling.then(
            (calling) => calling.silent(since),
            () => undefined,
          );
        }, timeoutMs);
        const number = used.pending.put({
          tag,
          stream,
          bytes: events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0),
          settle(answer) {
            clearTimeout(timer);
            resolve(answer);
          },
          fail(error) {
            clearTimeout(timer);
            reject(error);
          },
        });
        used.calling.then(
          ({ call }) => {
            if (used.pending.get(number)?.tag === tag)
              call.write(append(correlationOf(tag, number), stream, events, expected));
          },
          () => undefined,
        );
      });
    },
  };
}

function answered(pending: InFlight<Pending>, response: BatchAppendResp): void {
  const correlation = response.getCorrelationId()?.getString() ?? '';
  const number = Number.parseInt(correlation.slice(TAG_LENGTH), 16);
  const waiter = pending.get(number);
  if (waiter?.tag !== correlation.slice(0, TAG_LENGTH)) return;
  pending.take(number);
  const answer = answerOf(response, waiter);
  if (answer instanceof Error) waiter.fail(answer);
  else waiter.settle(answer);
}

function answerOf(response: BatchAppendResp, { stream, bytes }: Pending): AppendAnswer | Error {
  const success = response.getSuccess();
  if (success !== undefined) {
    return {
      kind: 'stored',
      revision: Number(success.getCurrentRevision()),
      commit: success.getPosition()?.getCommitPosition(),
    };
  }
  const status = response.getError()!;
  const details = status.getDetails()!;
  const message = status.getMessage();
  switch (details.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion': {
      const wrong = shared.WrongExpectedVersion.deserializeBinary(details.getValue_asU8());
      return {
        kind: 'conflict',
        actual: wrong.hasCurrentStreamRevision() ? Number(wrong.getCurrentStreamRevision()) : -1,
      };
    }
    case 'event_store.client.StreamDeleted':
      return new StreamDeletedError(stream);
    case 'event_store.client.MaximumAppendSizeExceeded':
      return new EventTooLargeError(bytes);
    case 'event_store.client.AccessDenied':
      return new AccessRefusedError(`EventStoreDB refuses to append to ${stream}: ${message}`);
    case 'event_store.client.BadRequest':
      return new Error(
        `EventStoreDB can't append to ${stream}: ${shared.BadRequest.deserializeBinary(details.getValue_asU8()).getMessage()}`,
      );
    // The append was not started: the server is starting, or overloaded.
    case 'google.protobuf.Empty':
      return new UnavailableError(`EventStoreDB does not take appends: ${message}`);
    default:
      return new UnavailableError(`EventStoreDB can't tell what became of an append: ${message}`, {
        outcomeUnknown: true,
      });
  }
}
