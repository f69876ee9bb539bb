/** The log as it grows, by stream, category or type, from a position or a time on. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { EventView } from '../../src/ops/history/eventView.js';
import { Events } from '../parts/event.js';
import { type Filter, Filters } from '../parts/filters.js';
import { Page, Problem } from '../parts/page.js';
import { count, ZONE } from '../parts/text.js';
import { messageOf } from '../service/attempt.js';
import { Failed, get, type Query } from '../service/call.js';
import type { LogPage } from '../service/pages.js';
import { session } from '../service/session.js';

/** Milliseconds between two looks at the end of the log. */
const POLL_MS = 2_000;
/** Most events on the page: earlier ones make room. */
const MOST = 500;

const FILTERS: readonly Filter[] = [
  { name: 'stream', label: 'Stream', hint: 'Its exact name, such as gift-1107b20fe0f51cc461cc.' },
  { name: 'category', label: 'Category', hint: 'The name before the first dash: gift, transaction, notification …' },
  { name: 'type', label: 'Type', hint: 'Such as GiftRedeemed.' },
  { name: 'after', label: 'From position', hint: 'Only what is later in the log.' },
  { name: 'from', label: 'From time', hint: 'A day or a time, such as 2026-05-04T12:30.' },
];

interface Tail {
  readonly events: readonly EventView[];
  readonly after: string | undefined;
  readonly end: boolean;
  readonly error?: string | undefined;
  /** Whether the filter was refused: it would be again. */
  readonly refused?: boolean | undefined;
}

const EMPTY: Tail = { events: [], after: undefined, end: false };

export function Log() {
  const [filter, setFilter] = useState<Query>({});
  const [follows, setFollows] = useState(true);
  const [tail, setTail] = useState<Tail>(EMPTY);
  const key = JSON.stringify(filter);
  const isIn = session.value.state === 'in';
  /** The filter whose events are in `tail`. */
  const shown = useRef<string>();
  useEffect(() => setTail(EMPTY), [key]);
  useEffect(() => {
    if (!isIn) return undefined;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (before: Tail): Promise<void> => {
      let now = before;
      if (!document.hidden || before.after === undefined)
        try {
          now = withPage(
            before,
            await get<LogPage<EventView>>('ops/log', { query: queryOf(filter, before), signal: gone.signal }),
          );
        } catch (failure) {
          now = { ...before, error: messageOf(failure), refused: failure instanceof Failed && failure.status === 422 };
        }
      if (gone.signal.aborted) return;
      setTail(now);
      if (now.refused === true) return;
      if (follows || !(now.end || now.error !== undefined))
        timer = setTimeout(() => void look(now), now.end || now.error !== undefined ? POLL_MS : 0);
    };
    const start = shown.current === key ? tail : EMPTY;
    shown.current = key;
    if (follows || start.after === undefined) void look(start);
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [key, follows, isIn]);
  const rest = tail.end ? ', up to the end of the log' : tail.refused === true ? '' : '; searching for more…';
  return (
    <Page title="Log" lead="What is appended, as it is appended. Personal fields are masked.">
      <Filters filters={FILTERS} choose={setFilter} />
      <label>
        <input
          type="checkbox"
          role="switch"
          checked={follows}
          onChange={({ currentTarget }) => setFollows(currentTarget.checked)}
        />
        Follow the log
      </label>
      {tail.error === undefined ? null : <Problem>{tail.error}</Problem>}
      <p role="status">
        {count(tail.events.length)} events{rest}
        {tail.events.length === MOST ? '. Earlier ones have made room.' : '.'}
      </p>
      <Events events={tail.events.toReversed()} />
    </Page>
  );
}

/** Without a beginning, the log's last events come first. */
function queryOf(filter: Query, { after }: Tail): Query {
  if (after !== undefined) return { ...filter, from: undefined, after, limit: 200, time_zone: ZONE };
  const hasBeginning = Boolean(filter['after'] || filter['from']);
  return hasBeginning ? { ...filter, limit: 200, time_zone: ZONE } : { ...filter, last: 100 };
}

const withPage = ({ events, after }: Tail, { data, next, end }: LogPage<EventView>): Tail => ({
  events: [...events, ...data].slice(-MOST),
  after: next ?? after,
  end,
});
