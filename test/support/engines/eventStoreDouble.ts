/**
 * An EventStoreDB for tests: the client's own service definitions in front of an embedded event store, with switches
 * for faults. Its behaviour beyond the port (dropped repeats, forgotten ids, gaps between positions, system events) is
 * that of 23.10; its odd checkpoints are those of 24.10.4.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import type { IGossipServer } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type { IServerFeaturesServer } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import type { DoubleLog } from './eventStoreDoubleLog.js';
import { openDoubleLog } from './eventStoreDoubleLog.js';
import type { DoubleStreams, Switches } from './eventStoreDoubleStreams.js';
import { doubleStreams, ODD_CHECKPOINT } from './eventStoreDoubleStreams.js';
import type { Proxy } from './eventStoreProxy.js';
import { openProxy } from './eventStoreProxy.js';

/** The double. */
export interface EventStoreDouble extends Pick<DoubleStreams, 'dropSubscriptions' | 'fallBehind' | 'running' | 'most'> {
  readonly url: string;
  readonly port: number;
  /** Its own, past the way. */
  readonly inner: number;
  /** The way to it: cut, down, freeze. */
  readonly way: Proxy;
  readonly switches: Switches;
  /** Its log, for changes that the adapter can't make. */
  readonly log: DoubleLog;
  /**
   * As a server that is killed, if it wasn't yet, and started again: connections have ended, ids it knew are forgotten.
   */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Its version. */
export interface DoubleOptions {
  readonly version?: string;
  /** Another node of one cluster: it has the same log. */
  readonly clusterOf?: EventStoreDouble;
}

/** Starts one with a log of its own, which already holds a server's own events. */
export async function startEventStoreDouble({
  version = '23.10.7',
  clusterOf,
}: DoubleOptions = {}): Promise<EventStoreDouble> {
  const dir = mkdtempSync(join(tmpdir(), 'gift-double-'));
  const log = clusterOf?.log ?? (await openDoubleLog(dir));
  if (clusterOf === undefined)
    await log.append(
      '$$$scavenges',
      [
        {
          id: crypto.randomUUID(),
          type: '$metadata',
          contentType: 'application/json',
          data: Buffer.from('{"$maxAge":2592000}'),
          metadata: Buffer.alloc(0),
        },
      ],
      'any',
    );
  const switches: Switches = {
    appends: [],
    leader: undefined,
    refuse: undefined,
    refuseReads: undefined,
    readMs: 0,
    deaf: false,
    deposedAt: undefined,
    checkpoints: [ODD_CHECKPOINT],
    version,
    maxAppendBytes: 1_048_576,
  };
  let cut = (): void => undefined;
  const streams = doubleStreams(log, switches, () => cut());
  const server = new Server({ 'grpc.max_receive_message_length': 17_000_000, 'grpc.max_concurrent_streams': 100 });
  server.addService(streamsGrpc.StreamsService, streams.service);
  server.addService(featuresGrpc.ServerFeaturesService, {
    getSupportedMethods(_call, callback) {
      const methods = Object.values(streamsGrpc.StreamsService as Record<string, { path: string }>).map(({ path }) => {
        const [, service, method] = path.split('/');
        return new featuresPb.SupportedMethod()
          .setServiceName(service!)
          .setMethodName(method!.toLowerCase())
          .setFeaturesList([]);
      });
      if (switches.version === undefined)
        callback({ code: status.UNIMPLEMENTED, details: 'Unknown service event_store.client.server_features' });
      else
        callback(
          null,
          new featuresPb.SupportedMethods().setEventStoreServerVersion(switches.version).setMethodsList(methods),
        );
    },
  } as IServerFeaturesServer);
  const inner = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
  const way = await openProxy({ port: inner });
  cut = () => way.cut();
  server.addService(gossipGrpc.GossipService, {
    read(_call, callback) {
      const member = new gossipPb.MemberInfo()
        .setInstanceId(new shared.UUID().setString(crypto.randomUUID()))
        .setTimeStamp('0')
        .setState(gossipPb.MemberInfo.VNodeState.LEADER)
        .setIsAlive(true)
        .setHttpEndPoint(new gossipPb.EndPoint().setAddress('127.0.0.1').setPort(way.port));
      callback(null, new gossipPb.ClusterInfo().setMembersList([member]));
    },
  } as IGossipServer);
  return {
    url: `esdb://127.0.0.1:${way.port}?tls=false`,
    port: way.port,
    inner,
    way,
    switches,
    log,
    dropSubscriptions: streams.dropSubscriptions,
    fallBehind: streams.fallBehind,
    running: streams.running,
    most: streams.most,
    async restart() {
      await way.down();
      log.forget();
      await way.up();
    },
    async close() {
      await way.close();
      server.forceShutdown();
      if (clusterOf === undefined) await log.close();
      rmSync(dir, { recursive: true });
    },
  };
}
