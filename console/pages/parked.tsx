/** Work that the service has given up and that waits for a person: in groups of one cause, and piece by piece. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ParkedGroup } from '../../src/ops/parked/groups.js';
import type { ParkedView } from '../../src/ops/parked/parkedView.js';
import { callerOf } from '../parts/event.js';
import { type Chosen, type Filter, Filters } from '../parts/filters.js';
import { Done, Page, Shown } from '../parts/page.js';
import { GroupActions } from '../parts/parkedActions.js';
import { type Column, Paged } from '../parts/table.js';
import { count, giftPath, Id, parkedPath, Time, transactionPath, words } from '../parts/text.js';
import { get } from '../service/call.js';
import { pauseSince, useLoaded } from '../service/loaded.js';

const FILTERS: readonly Filter[] = [
  {
    name: 'state',
    label: 'State',
    choices: [
      ['parked', 'Waits for a person'],
      ['retried', 'Retried'],
      ['discarded', 'Discarded'],
      ['all', 'All'],
    ],
  },
  {
    name: 'process',
    label: 'Work',
    choices: [
      ['', 'All'],
      ['purchase', 'Purchase'],
      ['notification', 'Notification'],
      ['refund', 'Refund'],
      ['dispute', 'Dispute'],
    ],
  },
];

/** What a piece belongs to. */
export function Entity({ of: { process, entity, transaction_id } }: { readonly of: ParkedView }) {
  if (process === 'notification')
    return (
      <>
        gift <Id of={entity} to={giftPath} />
      </>
    );
  return (
    <>
      transaction <Id of={transaction_id} to={transactionPath} />
    </>
  );
}

const COLUMNS: readonly Column<ParkedView>[] = [
  { name: 'Piece', cell: ({ id }) => <Id of={id} to={parkedPath} /> },
  { name: 'Work', cell: ({ process, step }) => `${words(process)}: ${words(step).toLowerCase()}` },
  { name: 'Of', cell: (piece) => <Entity of={piece} /> },
  { name: 'State', cell: ({ state }) => words(state) },
  { name: 'Cause', cell: ({ cause }) => cause },
  { name: 'Times', cell: ({ times }) => count(times), number: true },
  { name: 'Parked', cell: ({ parked_at }) => <Time at={parked_at} /> },
  { name: 'Changed', cell: ({ changed_at }) => <Time at={changed_at} /> },
  { name: 'By', cell: ({ by }) => (by === null ? '–' : callerOf({ by })) },
];

export function Parked() {
  const [chosen, setChosen] = useState<Chosen>({});
  const [turn, setTurn] = useState(0);
  return (
    <Page title="Parked work" lead="What the service has given up. It waits until somebody retries or discards it.">
      <h2>Groups of one cause</h2>
      <Groups done={() => setTurn(turn + 1)} />
      <h2>Pieces</h2>
      <Filters filters={FILTERS} choose={setChosen} />
      <Paged<ParkedView>
        key={turn}
        path="ops/parked"
        query={{ state: chosen['state'] ?? 'parked', process: chosen['process'] }}
        caption="Pieces of parked work"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        none="There is none."
      />
    </Page>
  );
}

/** Groups that are shown at once. */
const MOST = 20;

function Groups({ done }: { readonly done: () => void }) {
  const [decidedAt, setDecidedAt] = useState<string>();
  const groups = useLoaded(
    async (signal) => get<{ readonly data: readonly ParkedGroup[] }>('ops/parked/groups', { signal }),
    [],
    // What was handed back may be parked again.
    { everyMs: decidedAt === undefined ? undefined : () => pauseSince(decidedAt) },
  );
  const [shown, setShown] = useState(MOST);
  const [report, setReport] = useState<ComponentChildren>();
  return (
    <>
      {report === undefined ? null : <Done>{report}</Done>}
      <Shown of={groups}>
        {({ data }) => (
          <>
            {data.length === 0 ? <p>Nothing waits.</p> : null}
            <ul class="findings">
              {data.slice(0, shown).map((group) => (
                <li key={group.id}>
                  <Group
                    group={group}
                    done={(text) => {
                      setReport(text);
                      setDecidedAt(new Date().toISOString());
                      groups.reload();
                      done();
                    }}
                  />
                </li>
              ))}
            </ul>
            {data.length > shown ? (
              <button type="button" class="outline" onClick={() => setShown(shown + MOST)}>
                Show more groups
              </button>
            ) : null}
          </>
        )}
      </Shown>
    </>
  );
}

interface GroupProps {
  readonly group: ParkedGroup;
  readonly done: (report: ComponentChildren) => void;
}

function Group({ group, done }: GroupProps) {
  const { process, step, cause, first_at, last_at, example } = group;
  const piece = useLoaded(
    async (signal) => get<{ readonly data: ParkedView }>(`ops/parked/${example}`, { signal }),
    [example],
  );
  return (
    <article>
      <h3>
        {count(group.count)} × {words(process)}: {words(step).toLowerCase()}
      </h3>
      <p>{cause}</p>
      <p>
        First <Time at={first_at} />, last <Time at={last_at} />
      </p>
      <p>
        Example: <Id of={example} to={parkedPath} />
      </p>
      <Shown of={piece}>
        {({ data }) => (
          <p>
            It belongs to <Entity of={data} />
          </p>
        )}
      </Shown>
      <GroupActions group={group} done={done} />
    </article>
  );
}
