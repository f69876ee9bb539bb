import shared from '@eventstore/db-client/generated/shared_pb.js';
import pb from '@eventstore/db-client/generated/streams_pb.js';
import type { BatchAppendReq, ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { ExpectedRevision } from '../../ports/eventStore.js';
import type { ServerFilter } from './filters.js';
import type { EncodedEvent } from './records.js';

/** Events scanned between the server's progress reports. */
const SEARCH_WINDOW = 1_024;

const { Options } = pb.ReadReq;

export function readStream(stream: string, from: number, limit: number): ReadReq {
  return read((options) =>
    options
      .setStream(streamAt(stream).setRevision(String(from)))
      .setCount(String(limit))
      .setNoFilter(new shared.Empty()),
  );
}

export function readStreamBack(stream: string, limit: number, from?: number): ReadReq {
  const at =
    from === undefined ? streamAt(stream).setEnd(new shared.Empty()) : streamAt(stream).setRevision(String(from));
  return read((options) =>
    options.setStream(at).setCount(String(limit)).setNoFilter(new shared.Empty()).setReadDirection(1),
  );
}

/** Reads the log backwards from its end. Without `filter`, the server's own events are included. */
export function readLogBack(filter: ServerFilter | undefined, limit: number): ReadReq {
  return read((options) => {
    const back = options
      .setAll(new Options.AllOptions().setEnd(new shared.Empty()))
      .setCount(String(limit))
      .setReadDirection(1);
    return filter === undefined ? back.setNoFilter(new shared.Empty()) : back.setFilter(filterOptions(filter));
  });
}

export function subscribe(after: string | undefined, filter: ServerFilter): ReadReq {
  const from = new Options.AllOptions();
  if (after === undefined) from.setStart(new shared.Empty());
  else from.setPosition(new Options.Position().setCommitPosition(after).setPreparePosition(after));
  return read((options) =>
    options.setAll(from).setSubscription(new Options.SubscriptionOptions()).setFilter(filterOptions(filter)),
  );
}

/** An append that is stored whole or not at all, within the server's own time limit. */
export function append(
  correlation: string,
  stream: string,
  events: readonly EncodedEvent[],
  expected: ExpectedRevision,
): BatchAppendReq {
  const options = new pb.BatchAppendReq.Options().setStreamIdentifier(identifier(stream));
  if (expected === 'any') options.setAny(new shared.Empty());
  else if (expected === 'none') options.setNoStream(new shared.Empty());
  else options.setStreamPosition(String(expected));
  const proposed = events.map(({ id, type, data, metadata }) => {
    const message = new pb.BatchAppendReq.ProposedMessage().setId(uuid(id)).setData(data).setCustomMetadata(metadata);
    message.getMetadataMap().set('type', type).set('content-type', 'application/json');
    return message;
  });
  return new pb.BatchAppendReq()
    .setCorrelationId(uuid(correlation))
    .setOptions(options)
    .setProposedMessagesList(proposed)
    .setIsFinal(true);
}

function read(fill: (options: ReadReq.Options) => ReadReq.Options): ReadReq {
  return new pb.ReadReq().setOptions(
    fill(new Options().setUuidOption(new Options.UUIDOption().setString(new shared.Empty()))),
  );
}

function streamAt(stream: string): ReadReq.Options.StreamOptions {
  return new Options.StreamOptions().setStreamIdentifier(identifier(stream));
}

function filterOptions({ on, regex }: ServerFilter): ReadReq.Options.FilterOptions {
  const expression = new Options.FilterOptions.Expression().setRegex(regex);
  const options = new Options.FilterOptions().setMax(SEARCH_WINDOW).setCheckpointintervalmultiplier(1);
  return on === 'type' ? options.setEventType(expression) : options.setStreamIdentifier(expression);
}

function identifier(stream: string): InstanceType<typeof shared.StreamIdentifier> {
  return new shared.StreamIdentifier().setStreamName(Buffer.from(stream));
}

function uuid(text: string): InstanceType<typeof shared.UUID> {
  return new shared.UUID().setString(text);
}
