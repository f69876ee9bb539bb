/** Describes what a verification found, for auditors. */
import { TREE_STREAM } from '../../../domain/treeHeads.js';
import { UNCOVERED } from './headChecks.js';
import type {
  Findings,
  FirstDifference,
  LogVerification,
  PlacedEvent,
  Unsequenced,
  Verification,
} from './verification.js';

export function describeDifference({ change, count, number, event, before, signed }: FirstDifference): string {
  const many = count > 1 ? `${count} events, from number ${number} on, were` : `event ${number} was`;
  const now = event === null ? 'nothing stands there' : `there stands ${describeEvent(event)}`;
  const behind = before === null ? 'at the beginning of the log' : `behind ${describeEvent(before)}`;
  const unsigned = signed ? '' : '; no signed head covers it, its tile tells so';
  switch (change) {
    case 'altered':
      return `${many} altered: ${now}${unsigned}`;
    case 'removed':
      return `${many} removed, ${behind}: ${now}${unsigned}`;
    case 'inserted':
      return `${many} inserted: ${now}${unsigned}`;
    case 'exchanged':
      return `events ${number} and ${number + count} were exchanged: ${now}${unsigned}`;
    case 'cut off':
      if (event !== null)
        return `the log was restored from a backup that lacks ${count} signed events, from number ${number} on: ${now}`;
      return `the log was cut off at its end: ${count} events are missing from number ${number} on, ${behind}${unsigned}`;
    case 'start missing':
      return `the event that the tree was started with (TreeStarted, in the stream ${TREE_STREAM}) is missing: it was removed or cut off, and without it no leaf can be computed`;
    case 'unknown':
      return `one or more of the events ${number} to ${number + count - 1} were altered, removed, inserted or exchanged, and no tile tells which`;
    default:
      return change satisfies never;
  }
}

const describeEvent = ({ stream, revision, type, id, at, position }: PlacedEvent): string =>
  `${type} of ${at}, revision ${revision} of ${stream} (position ${position}, id ${id})`;

const describeUnsequenced = ({ event }: Unsequenced): string =>
  `an event was inserted where the log has no position: ${describeEvent(event)}`;

const NOT_NEXT = 'this is not the next event of its stream: ';

/** Fault of a log. `corrupted tiles`: the log is what was signed, but stored tiles are not. */
export interface Fault {
  readonly what:
    | 'cut off'
    | 'difference'
    | 'unsequenced event'
    | 'missing event'
    | 'wrong head'
    | 'unknown signer'
    | 'corrupted tiles';
  readonly message: string;
}

/** The most informative fault of a verification; `undefined` where everything is as it was signed. */
export function firstFault(found: Verification): Fault | undefined {
  const { difference, verified_heads, unverified_heads } = found;
  const [gap] = found.gaps.first;
  const [streamGap] = found.stream_gaps.first;
  const [unsequenced] = found.unsequenced.first;
  const [head] = found.wrong_heads.first;
  if (difference !== null)
    return {
      what: difference.change === 'cut off' ? 'cut off' : 'difference',
      message: describeDifference(difference),
    };
  if (unsequenced !== undefined) return { what: 'unsequenced event', message: describeUnsequenced(unsequenced) };
  if (gap !== undefined)
    return { what: 'missing event', message: `events are missing before ${describeEvent(gap.event)}` };
  if (streamGap !== undefined)
    return { what: 'missing event', message: `${NOT_NEXT}${describeEvent(streamGap.event)}` };
  if (unverified_heads > 0 && verified_heads === 0)
    return { what: 'unknown signer', message: 'no head is signed by a known key' };
  if (head !== undefined)
    // A head that is only uncovered says nothing of the log: those are the last in the list.
    return {
      what: head.why === UNCOVERED ? 'unknown signer' : 'wrong head',
      message: `${head.from}, of ${head.size} events: ${head.why}`,
    };
  if (found.spoilt_tiles) return { what: 'corrupted tiles', message: 'tiles are not what was signed; the log is' };
  return undefined;
}

/** Describes all that was found, a sentence a line. */
export function* describeVerification(found: LogVerification): Generator<string> {
  const { events, heads, agreed_size } = found;
  if (found.continued_at !== null)
    yield `the first ${found.continued_from} events were read by a call that was interrupted at ${found.continued_at}, and are not read again`;
  yield `${events} events, up to position ${found.position ?? 'none'}; root ${found.root}`;
  yield `${heads} signed heads; the last that the log agrees with is of ${agreed_size} events, ${events - agreed_size} stand behind it`;
  if (found.unverified_heads > 0)
    yield `${found.unverified_heads} of the heads are not signed by a known key: their signatures are not verified`;
  if (found.agrees) yield 'all is as it was signed';
  for (const { log_id, events: size, folder } of found.other_logs)
    yield `${folder} has a signed head of another log, ${log_id}, of ${size} events, which this log does not continue: that is so after a restore from an older backup; else this log may be that one, altered and with another id`;
  if (found.difference !== null) yield describeDifference(found.difference);
  for (const { from, size, why } of found.wrong_heads.first) yield `${from}, of ${size} events: ${why}`;
  yield* further(found.wrong_heads, 'heads');
  for (const unsequenced of found.unsequenced.first) yield describeUnsequenced(unsequenced);
  yield* further(found.unsequenced, 'events there');
  for (const { after, event } of found.gaps.first)
    yield `events are missing between position ${after ?? 'none'} and ${describeEvent(event)}`;
  yield* further(found.gaps, 'gaps');
  for (const { event } of found.stream_gaps.first) yield `${NOT_NEXT}${describeEvent(event)}`;
  yield* further(found.stream_gaps, 'gaps in streams');
  if (found.spoilt_tiles)
    yield 'tiles in SEAL_DIR, or its file positions, are not those that were signed: stop the service, remove them, and start it: it makes them anew from the log';
}

function* further({ found, first }: Findings<unknown>, what: string): Generator<string> {
  if (found > first.length) yield `and ${found - first.length} further ${what}`;
}
