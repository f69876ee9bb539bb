/** The streams service of the double: the answers of EventStoreDB 23.10, over a log of ours. */
import { setTimeout as sleep } from 'node:timers/promises';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import pb from '@eventstore/db-client/generated/streams_pb.js';
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
  DeleteReq,
  DeleteResp,
  ReadReq,
  ReadResp,
  TombstoneReq,
  TombstoneResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import type { IStreamsServer } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ServerDuplexStream, ServerWritableStream, ServiceError } from '@grpc/grpc-js';
import { Metadata, status } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import type { DoubleLog, RawEvent, RawExpected, RawOutcome, RawRecord } from './eventStoreDoubleLog.js';

/** The fault of one append. */
export type AppendFault =
  /** Nothing. */
  | 'none'
  /** The connection ends before it is stored. */
  | 'cutBefore'
  /** It is stored, and the connection ends before the answer. */
  | 'cutAfter'
  /** It is stored and never answered. */
  | 'unanswered'
  /** It is stored, and answered as an unknown outcome. */
  | 'timeoutAfter'
  /** It is not stored, and answered as an unknown outcome. */
  | 'timeoutBefore'
  | 'notReady'
  | 'accessDenied'
  /** Stored, and answered so many ms later. */
  | { readonly lateMs: number };

/** Switches for tests. */
export interface Switches {
  /** One for each append to come, in their order; then nothing goes wrong. */
  readonly appends: AppendFault[];
  /** Set: this server is no leader; that one is. */
  leader: { readonly host: string; readonly port: number } | undefined;
  /** Set: calls end with this error instead of an answer. */
  refuse: { readonly code: number; readonly details: string; readonly exception?: string } | undefined;
  /** As `refuse`, and appends are taken all the same. */
  refuseReads: Switches['refuse'];
  /** Milliseconds after which it begins with a read. */
  readMs: number;
  /** Live subscriptions are silent about new appends. */
  deaf: boolean;
  /** Set: a deposed leader that does not know it. It has the log up to this commit position, and serves as before. */
  deposedAt: number | undefined;
  /**
   * The checkpoints (commit positions) of a subscription from the log's start before it has caught up, where nothing
   * has matched and fewer events than a window were looked at. The default is that of EventStoreDB 24.10.0 to 24.10.4
   * (upstream PR 4892).
   */
  checkpoints: readonly string[];
  /** Its version; `undefined`: it does not know the question. */
  version: string | undefined;
  /** The least bytes that an append may not have. */
  maxAppendBytes: number;
}

/** The service, with counters for tests. */
export interface DoubleStreams {
  readonly service: IStreamsServer;
  /** Ends all subscriptions, as a server does when a reader is slower than the appends. */
  dropSubscriptions(): void;
  /**
   * Says to all live subscriptions that they have fallen behind, and have caught up again, as servers from 24 on do.
   */
  fallBehind(): void;
  /** Reads and subscriptions under way. */
  readonly running: () => number;
  /** The most that ran at once since the start. */
  readonly most: () => number;
}

const JSON_TYPE = 'application/json';
/** The position of nothing, as an unsigned number. */
export const ODD_CHECKPOINT = '18446744073709551615';
/** A repeat of an append that is not stored yet is dropped, and answered so much later, in ms. */
const DROPPED_MS = 2_000;
/** So many messages may wait for a live subscription's reader. */
const LIVE_BUFFER = 32;

/** @param cut ends all connections */
export function doubleStreams(log: DoubleLog, switches: Switches, cut: () => void): DoubleStreams {
  const subscriptions = new Set<(error: Partial<ServiceError>) => void>();
  const falls = new Set<() => void>();
  const storing = new Set<string>();
  let running = 0;
  let most = 0;

  /** Why a call is not served. */
  function refusal(metadata: Metadata, refuse = switches.refuse): Partial<ServiceError> | undefined {
    if (refuse !== undefined) return errorOf(refuse.code, refuse.details, refuse.exception);
    if (switches.leader === undefined || metadata.get('requires-leader')[0] !== 'true') return undefined;
    const { host, port } = switches.leader;
    return errorOf(status.NOT_FOUND, 'Leader info available', 'not-leader', {
      'leader-endpoint-host': host,
      'leader-endpoint-port': String(port),
    });
  }

  const isHere = ({ commit }: RawRecord): boolean => commit <= (switches.deposedAt ?? Number.POSITIVE_INFINITY);

  async function store(
    stream: string,
    events: readonly RawEvent[],
    expected: RawExpected,
  ): Promise<RawOutcome | 'dropped' | 'large'> {
    if (
      events.reduce((size, { type, data, metadata }) => size + type.length * 2 + data.length + metadata.length, 0) >
      switches.maxAppendBytes
    )
      return 'large';
    const first = events[0]!.id;
    if (storing.has(first)) return 'dropped';
    storing.add(first);
    try {
      return await log.append(stream, events, expected);
    } finally {
      storing.delete(first);
    }
  }

  async function batch(
    request: BatchAppendReq,
    metadata: Metadata,
    call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>,
  ): Promise<void> {
    const fault = switches.appends.shift() ?? 'none';
    const options = request.getOptions()!;
    const stream = nameOf(options.getStreamIdentifier());
    const answer = (fill: (response: BatchAppendResp) => void): void => {
      const response = new pb.BatchAppendResp()
        .setCorrelationId(request.getCorrelationId())
        .setStreamIdentifier(options.getStreamIdentifier());
      fill(response);
      if (!call.destroyed) call.write(response);
    };
    const refused = refusal(metadata);
    if (refused !== undefined) return void call.emit('error', refused);
    if (fault === 'cutBefore') return cut();
    if (fault === 'notReady')
      return answer((response) =>
        response.setError(errorStatus('google.protobuf.Empty', new shared.Empty(), 'Server Is Not Ready')),
      );
    if (fault === 'accessDenied')
      return answer((response) =>
        response.setError(errorStatus('event_store.client.AccessDenied', new shared.AccessDenied())),
      );
    const timeout = (): void =>
      answer((response) => response.setError(errorStatus('event_store.client.Timeout', new shared.Timeout())));
    if (fault === 'timeoutBefore') return timeout();
    const events = request.getProposedMessagesList().map((message) => rawEvent(message));
    const wrongId = events.some(({ id }) => !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id));
    if (wrongId)
      return answer((response) =>
        response.setError(
          errorStatus('event_store.client.BadRequest', new shared.BadRequest().setMessage('Unrecognized Guid format.')),
        ),
      );
    const expected = expectedOf(
      options.hasAny(),
      options.hasNoStream(),
      options.hasStreamExists(),
      options.getStreamPosition(),
    );
    const outcome = await store(stream, events, expected);
    if (outcome === 'dropped') {
      await sleep(DROPPED_MS, undefined, { ref: false });
      return timeout();
    }
    if (fault === 'cutAfter') return cut();
    if (fault === 'unanswered') return;
    if (fault === 'timeoutAfter') return timeout();
    if (typeof fault === 'object') await sleep(fault.lateMs);
    answer((response) => {
      if (outcome === 'large')
        response.setError(
          errorStatus(
            'event_store.client.MaximumAppendSizeExceeded',
            new shared.MaximumAppendSizeExceeded().setMaxappendsize(switches.maxAppendBytes),
          ),
        );
      else if (outcome === 'deleted')
        response.setError(
          errorStatus(
            'event_store.client.StreamDeleted',
            new shared.StreamDeleted().setStreamIdentifier(options.getStreamIdentifier()),
          ),
        );
      else if ('conflict' in outcome)
        response.setError(errorStatus('event_store.client.WrongExpectedVersion', wrongVersion(outcome.conflict)));
      else {
        const success = new pb.BatchAppendResp.Success().setCurrentRevision(String(outcome.revision));
        const { commit } = outcome;
        response.setSuccess(
          commit === undefined
            ? success.setNoPosition(new emptyPb.Empty())
            : success.setPosition(
                new shared.AllStreamPosition().setCommitPosition(String(commit)).setPreparePosition(String(commit)),
              ),
        );
      }
    });
  }

  async function read(call: ServerWritableStream<ReadReq, ReadResp>): Promise<void> {
    const options = call.request.getOptions()!;
    const back = options.getReadDirection() === 1;
    const limit = Math.min(Number(options.getCount()), Number.MAX_SAFE_INTEGER);
    if (options.hasSubscription()) return subscribe(call, options);
    if (options.hasAll()) {
      const passes = matcherOf(options.getFilter());
      const matches = (record: RawRecord): boolean => isHere(record) && passes(record);
      const records = back
        ? await log.logBack(limit, matches)
        : await log.logOn(Number(options.getAll()!.getPosition()?.getCommitPosition() ?? 0), limit, matches);
      for (const record of records) await send(call, eventResponse(record));
      return void call.end();
    }
    const from = options.getStream()!;
    const stream = nameOf(from.getStreamIdentifier());
    const revision = from.hasRevision() ? Number(from.getRevision()) : undefined;
    const records = back ? await log.readBack(stream, revision, limit) : await log.read(stream, revision ?? 0, limit);
    if (records === 'deleted') {
      throw errorOf(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, 'stream-deleted', {
        'stream-name': stream,
      });
    }
    if (records === undefined) {
      await send(
        call,
        new pb.ReadResp().setStreamNotFound(
          new pb.ReadResp.StreamNotFound().setStreamIdentifier(from.getStreamIdentifier()),
        ),
      );
      return void call.end();
    }
    for (const record of records) await send(call, eventResponse(record));
    call.end();
  }

  async function subscribe(call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const ending = new AbortController();
    const matches = matcherOf(options.getFilter());
    const window = options.getFilter()!.getMax() * options.getFilter()!.getCheckpointintervalmultiplier();
    const at = options.getAll()!.getPosition();
    let live = false;
    let waiting = 0;
    let passed = 0;
    let considered = 0;
    let matched = false;
    let dropped: Partial<ServiceError> | undefined;
    const drop = (error: Partial<ServiceError>): void => {
      dropped ??= error;
      ending.abort();
    };
    subscriptions.add(drop);
    const fall = (): void => {
      if (!live) return;
      call.write(new pb.ReadResp().setFellBehind(new pb.ReadResp.FellBehind()));
      setTimeout(() => call.write(new pb.ReadResp().setCaughtUp(new pb.ReadResp.CaughtUp())), 50);
    };
    falls.add(fall);
    call.setMaxListeners(0);
    call.on('cancelled', () => ending.abort());
    call.on('close', () => ending.abort());
    const tell = async (response: ReadResp): Promise<void> => {
      if (!live) return send(call, response);
      waiting += 1;
      if (waiting > LIVE_BUFFER) drop(tooSlow());
      void send(call, response).then(() => (waiting -= 1));
    };
    try {
      await send(
        call,
        new pb.ReadResp().setConfirmation(new pb.ReadResp.SubscriptionConfirmation().setSubscriptionId('double')),
      );
      for await (const { records, caughtUp } of log.follow(
        at === undefined ? undefined : Number(at.getCommitPosition()),
        ending.signal,
      )) {
        if (live && switches.deaf) continue;
        for (const record of records.filter(isHere)) {
          if (ending.signal.aborted) break;
          passed += 1;
          considered += 1;
          matched ||= matches(record);
          if (matches(record)) await tell(eventResponse(record));
          if (passed < window) continue;
          passed = 0;
          await tell(checkpointResponse(String(record.commit)));
        }
        if (ending.signal.aborted) break;
        if (!caughtUp || live) continue;
        if (at === undefined && !matched && considered < window)
          for (const commit of switches.checkpoints) await send(call, checkpointResponse(commit));
        await send(call, new pb.ReadResp().setCaughtUp(new pb.ReadResp.CaughtUp()));
        live = true;
      }
      if (dropped !== undefined) throw dropped;
    } finally {
      subscriptions.delete(drop);
      falls.delete(fall);
    }
  }

  const failing =
    (call: { emit(event: 'error', error: unknown): boolean }): ((error: unknown) => void) =>
    (error) =>
      void call.emit('error', error instanceof Error ? errorOf(status.INTERNAL, error.message) : error);

  const service: IStreamsServer = {
    read(call) {
      const refused = refusal(call.metadata, switches.refuse ?? switches.refuseReads);
      if (refused !== undefined) return void call.emit('error', refused);
      running += 1;
      most = Math.max(most, running);
      (switches.readMs === 0 ? read(call) : sleep(switches.readMs).then(async () => read(call)))
        .catch(failing(call))
        .finally(() => (running -= 1));
    },
    batchAppend(call) {
      const refused = refusal(call.metadata);
      if (refused !== undefined) return void call.emit('error', refused);
      call.on('data', (request: BatchAppendReq) => void batch(request, call.metadata, call).catch(failing(call)));
      call.on('end', () => call.end());
      call.on('error', () => undefined);
    },
    append(call, callback) {
      const requests: AppendReq[] = [];
      call.on('data', (request: AppendReq) => requests.push(request));
      call.on('error', () => undefined);
      call.on('end', () => {
        const options = requests[0]!.getOptions()!;
        const expected = expectedOf(
          options.hasAny(),
          options.hasNoStream(),
          options.hasStreamExists(),
          options.getRevision(),
        );
        store(
          nameOf(options.getStreamIdentifier()),
          requests.slice(1).map((request) => rawEvent(request.getProposedMessage()!)),
          expected,
        ).then(
          (outcome) => {
            if (typeof outcome === 'string') callback(errorOf(status.FAILED_PRECONDITION, outcome) as ServiceError);
            else callback(null, appendResponse(outcome));
          },
          (error: Error) => callback(errorOf(status.INTERNAL, error.message) as ServiceError),
        );
      });
    },
    delete(call, callback) {
      log
        .remove(nameOf(call.request.getOptions()?.getStreamIdentifier()), false)
        .then(() => callback(null, deleted<DeleteReq, DeleteResp>(new pb.DeleteResp())), callback);
    },
    tombstone(call, callback) {
      log
        .remove(nameOf(call.request.getOptions()?.getStreamIdentifier()), true)
        .then(() => callback(null, deleted<TombstoneReq, TombstoneResp>(new pb.TombstoneResp())), callback);
    },
  } as IStreamsServer;

  return {
    service,
    dropSubscriptions() {
      for (const drop of subscriptions) drop(tooSlow());
    },
    fallBehind() {
      for (const fall of falls) fall();
    },
    running: () => running,
    most: () => most,
  };
}

function tooSlow(): Partial<ServiceError> {
  return errorOf(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );
}

function deleted<_Request, Response extends DeleteResp | TombstoneResp>(response: Response): Response {
  return response;
}

function errorOf(
  code: number,
  details: string,
  exception?: string,
  more: Readonly<Record<string, string>> = {},
): Partial<ServiceError> {
  const metadata = new Metadata();
  if (exception !== undefined) metadata.set('exception', exception);
  for (const [name, value] of Object.entries(more)) metadata.set(name, value);
  return { code, details, metadata };
}

function errorStatus(
  name: string,
  details: { serializeBinary(): Uint8Array },
  message = name.split('.').at(-1)!,
): InstanceType<typeof statusPb.Status> {
  const packed = new anyPb.Any();
  packed.pack(details.serializeBinary(), name);
  return new statusPb.Status().setMessage(message).setDetails(packed);
}

function wrongVersion(actual: number): InstanceType<typeof shared.WrongExpectedVersion> {
  const wrong = new shared.WrongExpectedVersion();
  return actual === -1 ? wrong.setCurrentNoStream(new shared.Empty()) : wrong.setCurrentStreamRevision(String(actual));
}

function appendResponse(outcome: Exclude<RawOutcome, 'deleted'>): AppendResp {
  const response = new pb.AppendResp();
  if ('conflict' in outcome) {
    const wrong = new pb.AppendResp.WrongExpectedVersion();
    return response.setWrongExpectedVersion(
      outcome.conflict === -1
        ? wrong.setCurrentNoStream(new shared.Empty())
        : wrong.setCurrentRevision(String(outcome.conflict)),
    );
  }
  const success = new pb.AppendResp.Success().setCurrentRevision(String(outcome.revision));
  const { commit } = outcome;
  return response.setSuccess(
    commit === undefined
      ? success.setNoPosition(new shared.Empty())
      : success.setPosition(
          new pb.AppendResp.Position().setCommitPosition(String(commit)).setPreparePosition(String(commit)),
        ),
  );
}

function expectedOf(any: boolean, none: boolean, exists: boolean, revision: string): RawExpected {
  if (any) return 'any';
  if (none) return 'none';
  return exists ? 'exists' : Number(revision);
}

function nameOf(identifier: InstanceType<typeof shared.StreamIdentifier> | undefined): string {
  return Buffer.from(identifier!.getStreamName_asU8()).toString();
}

function rawEvent(message: BatchAppendReq.ProposedMessage | AppendReq.ProposedMessage): RawEvent {
  const metadata = message.getMetadataMap();
  return {
    id: message.getId()!.getString(),
    type: String(metadata.get('type')),
    contentType: String(metadata.get('content-type')),
    data: Buffer.from(message.getData_asU8()),
    metadata: Buffer.from(message.getCustomMetadata_asU8()),
  };
}

function checkpointResponse(commit: string): ReadResp {
  return new pb.ReadResp().setCheckpoint(
    new pb.ReadResp.Checkpoint().setCommitPosition(commit).setPreparePosition(commit),
  );
}

/** An event as the server sends it to readers. */
export function eventResponse({
  id,
  type,
  contentType,
  data,
  metadata,
  stream,
  revision,
  commit,
  created,
}: RawRecord): ReadResp {
  const record = new pb.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(id))
    .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(stream)))
    .setStreamRevision(String(revision))
    .setCommitPosition(String(commit))
    .setPreparePosition(String(commit))
    .setData(data)
    .setCustomMetadata(metadata);
  record
    .getMetadataMap()
    .set('type', type)
    .set('content-type', contentType || JSON_TYPE)
    .set('created', String(BigInt(created) * 10_000n));
  return new pb.ReadResp().setEvent(new pb.ReadResp.ReadEvent().setEvent(record).setCommitPosition(String(commit)));
}

/**
 * The server's filters; regular expressions are .NET's. Lists of prefixes compare by the rules of a language: a letter
 * and its accent are one.
 */
function matcherOf(filter: ReadReq.Options.FilterOptions | undefined): (record: RawRecord) => boolean {
  if (filter === undefined) return () => true;
  const expression = (filter.hasEventType() ? filter.getEventType() : filter.getStreamIdentifier())!;
  const text = (record: RawRecord): string => (filter.hasEventType() ? record.type : record.stream);
  const ordinary = (record: RawRecord): boolean => record.stream !== '$epoch-information';
  if (expression.getRegex() !== '') {
    const regex = new RegExp(expression.getRegex().replaceAll('\\z', '$'));
    return (record) => ordinary(record) && regex.test(text(record));
  }
  const prefixes = expression.getPrefixList().map((prefix) => prefix.normalize('NFC'));
  return (record) => ordinary(record) && prefixes.some((prefix) => text(record).normalize('NFC').startsWith(prefix));
}

/** Waits for a reader that is slower; a call that has ended takes nothing any more. */
async function send(call: ServerWritableStream<ReadReq, ReadResp>, response: ReadResp): Promise<void> {
  if (call.cancelled || call.destroyed) return;
  if (call.write(response)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      call.off('drain', done);
      call.off('close', done);
      call.off('cancelled', done);
      resolve();
    };
    call.on('drain', done);
    call.on('close', done);
    call.on('cancelled', done);
  });
}
