import features from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type { SupportedMethods } from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { type CallOptions, type Channel, type Metadata, connectivityState } from '@grpc/grpc-js';
import { failureOf, OtherLogError, StreamDeletedError, UnsafeServerError } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { decode, typeOf } from './records.js';
import { readStream } from './requests.js';

type Version = readonly [major: number, minor: number, patch: number];

/** The first version that reports when a subscription has caught up. */
const LEAST: Version = [23, 10, 0];

/**
 * Versions whose checkpoints may lead a filtered reader past unread events. Such a checkpoint has a position that no
 * event can have (kurrent-io/KurrentDB, pull request 4892), or that of an event not yet scanned (issue 4970).
 */
const FAULTY: readonly { readonly from: Version; readonly mended: Version }[] = [
  { from: [24, 2, 0], mended: [24, 10, 5] },
  { from: [25, 0, 0], mended: [25, 0, 1] },
];

const UNIMPLEMENTED = 12;

/**
 * Refuses a version that is too old or has a known fault.
 * @param said the reported version; builds from source may report none, or 0.0.0
 * @returns false where no version was reported: then no fault is known
 * @throws UnsafeServerError naming the version to take
 */
export function refuseUnsafe(said: string): boolean {
  const parts = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(said.trim());
  if (parts === null || Number(parts[1]) === 0) return false;
  const version: Version = [Number(parts[1]), Number(parts[2]), Number(parts[3] ?? 0)];
  const name = version[0] < 25 ? 'EventStoreDB' : 'KurrentDB';
  if (before(version, LEAST))
    throw new UnsafeServerError(`${name} ${said} is too old: use ${LEAST[0]}.${LEAST[1]} or later`);
  const fault = FAULTY.find(({ from, mended }) => !before(version, from) && before(version, mended));
  if (fault === undefined) return true;
  throw new UnsafeServerError(
    `${name} ${said} is refused, since readers of its log may miss events: use ${fault.mended.join('.')} or later`,
  );
}

function before(one: Version, other: Version): boolean {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at !== -1 && one[at]! < other[at]!;
}

type CallArguments = [Metadata, CallOptions];
type CallArgumentsOf = (options: { requiresLeader: boolean }) => CallArguments;

/** Checks the server once per connection. */
export interface Vetting {
  /**
   * @param callArguments makes credentials and deadline
   * @throws UnsafeServerError, OtherLogError; gRPC's own error when the server does not answer
   */
  vet(channel: Channel, callArguments: CallArgumentsOf): Promise<void>;
  /** From now on a server that holds another log, or none, is refused. */
  expect(logId: string): void;
}

export function openVetting(onUnknown: () => void): Vetting {
  const vetted = new WeakMap<Channel, Promise<void>>();
  let expected: string | undefined;

  async function check(channel: Channel, callArguments: CallArgumentsOf): Promise<void> {
    const required = expected;
    const [version, found] = await Promise.all([
      requestedVersion(channel, callArguments({ requiresLeader: false })),
      // Another node than the leader may still lack the log's first events.
      required === undefined ? undefined : logIdAt(channel, callArguments({ requiresLeader: true })),
    ]);
    if (!refuseUnsafe(version)) onUnknown();
    if (found !== required) throw new OtherLogError();
  }

  return {
    expect(logId) {
      expected = logId;
    },
    async vet(channel, callArguments) {
      let checked = vetted.get(channel);
      if (checked === undefined) {
        checked = check(channel, callArguments);
        vetted.set(channel, checked);
        const forget = (): void => void vetted.delete(channel);
        // A channel may reconnect by itself, perhaps to a server that was replaced.
        checked.then(() => whenLost(channel, forget), forget);
      }
      await checked;
    },
  };
}

function whenLost(channel: Channel, then: () => void): void {
  if (channel.getConnectivityState(false) === connectivityState.READY)
    channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, then);
  else then();
}

async function requestedVersion(channel: Channel, [metadata, options]: CallArguments): Promise<string> {
  const client = new features.ServerFeaturesClient('', null as never, { channelOverride: channel });
  return new Promise((resolve, reject) => {
    client.getSupportedMethods(new shared.Empty(), metadata, options, (error, answer: SupportedMethods | undefined) => {
      if (error === null) resolve(answer!.getEventStoreServerVersion());
      else if (error.code === UNIMPLEMENTED) resolve('');
      else reject(error);
    });
  });
}

/** Id of the log that a server holds; `undefined`: it holds none. @throws gRPC's own error */
async function logIdAt(channel: Channel, [metadata, options]: CallArguments): Promise<string | undefined> {
  const client = new streams.StreamsClient('', null as never, { channelOverride: channel });
  return new Promise((resolve, reject) => {
    const call = client.read(readStream(LOG_STREAM, 0, 1), metadata, options);
    let logId: string | undefined;
    call.on('data', (response: ReadResp) => {
      const record = response.getEvent()?.getEvent();
      try {
        if (record !== undefined) ({ logId } = decode(record, LOG_STREAM, typeOf(record)).data as { logId?: string });
      } catch (error) {
        reject(error);
        call.cancel();
      }
    });
    call.on('error', (error) =>
      failureOf(error, {}) instanceof StreamDeletedError ? resolve(undefined) : reject(error),
    );
    call.on('end', () => resolve(logId));
  });
}
