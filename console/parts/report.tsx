/** What an action for many has done, or would do. */
import type { ReportItem } from '../service/many.js';
import { count, Id } from './text.js';

const OUTCOMES = {
  done: ['will be done', 'done'],
  unchanged: ['will stay unchanged', 'unchanged'],
  refused: ['will be refused', 'refused'],
} as const;

/** Refusals that are listed: of thousands the first ones tell enough. */
const MOST_REFUSED = 100;

interface ReportProps {
  readonly items: readonly ReportItem[];
  readonly dry: boolean;
  /** Page of an item. */
  readonly to: (id: string) => string;
}

/** How many of the items came out how, and why some are refused. */
export function Report({ items, dry, to }: ReportProps) {
  const refused = items.filter(({ outcome }) => outcome === 'refused');
  const sums = Object.entries(OUTCOMES).flatMap(([outcome, [before, after]]) => {
    const number = items.filter((item) => item.outcome === outcome).length;
    return number === 0 ? [] : [`${count(number)} ${dry ? before : after}`];
  });
  return (
    <>
      <p>
        {dry ? 'What will happen' : 'What was done'}: {sums.join(', ') || 'nothing'}.
      </p>
      {refused.length === 0 ? null : (
        <ul>
          {refused.slice(0, MOST_REFUSED).map(({ id, why }) => (
            <li key={id}>
              <Id of={id} to={to} />: {why}
            </li>
          ))}
        </ul>
      )}
      {refused.length > MOST_REFUSED ? <p>The first {MOST_REFUSED} refusals are listed.</p> : null}
    </>
  );
}
