/** The last work that was requested on a read model: its progress, result or refusal. */
import type { ComponentChildren } from 'preact';
import type { Order } from '../../src/runtime/readmodels/index.js';
import type { Loaded } from '../service/loaded.js';
import type { LastTask, Task } from '../service/readModels.js';
import { Problem, Shown } from './page.js';
import { buildName, RequestedBy } from './readModelParts.js';
import { Shortened } from './table.js';
import { count, words } from './text.js';

export function RebuildRequest({ of }: { readonly of: Loaded<LastTask<'rebuild'>> }) {
  return (
    <Last of={of} title="Request of a rebuild" runs="The log is compared with what was signed">
      {() => <p>The rebuild was requested: the builds above show what became of it.</p>}
    </Last>
  );
}

export function LastVerification({ of }: { readonly of: Loaded<LastTask<'verification'>> }) {
  return (
    <Last of={of} title="Verification" runs="In progress">
      {({ result }) => (result === null ? null : <Compared result={result} />)}
    </Last>
  );
}

export function LastRepair({ of }: { readonly of: Loaded<LastTask<'repair'>> }) {
  return (
    <Last of={of} title="Repair" runs="In progress">
      {({ result }) => (result === null ? null : <Repaired result={result} />)}
    </Last>
  );
}

interface LastProps<K extends Order['kind']> {
  readonly of: Loaded<LastTask<K>>;
  readonly title: string;
  /** What is shown while the extent of the work is unknown. */
  readonly runs: string;
  /** The result of a task that is done. */
  readonly children: (task: Task<K>) => ComponentChildren;
}

function Last<K extends Order['kind']>({ of, title, runs, children }: LastProps<K>) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Shown of={of}>
        {({ task }) => {
          if (task === undefined) return <p>None was requested in the last week.</p>;
          const { state, by, at, reason, progress, failure } = task;
          return (
            <>
              <RequestedBy by={by} at={at} reason={reason} />
              {state === 'running' ? <Bar label={title} share={progress} unknown={runs} /> : null}
              {state === 'failed' ? <Problem>It was refused: {failure ?? 'no cause is stored'}</Problem> : null}
              {state === 'interrupted' ? (
                <Problem>
                  The process that worked on it does not answer. Another one goes on, or start it again.
                </Problem>
              ) : null}
              {state === 'done' ? children(task) : null}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

interface BarProps {
  readonly label: string;
  /** From 0 to 1; null: unknown. */
  readonly share: number | null;
  readonly unknown: string;
}

export function Bar({ label, share, unknown }: BarProps) {
  const percent = share === null ? undefined : Math.floor(share * 100);
  return (
    <p>
      <progress aria-label={label} max={100} value={percent} />
      {percent === undefined ? unknown : `${percent} %`}
    </p>
  );
}

type Result<K extends 'verification' | 'repair'> = NonNullable<Task<K>['result']>;

function Compared({ result }: { readonly result: Result<'verification'> }) {
  const { documents, differences, unsettled, behind, found } = result;
  return (
    <>
      <p>
        {count(documents)} documents of {buildName(result)} were compared:{' '}
        {differences === 0 ? 'none differs from the log.' : `${count(differences)} differ from the log.`}
        {unsettled === 0
          ? null
          : ` ${count(unsettled)} could not be compared${behind ? ', because the read model is behind' : ''}.`}
      </p>
      {found.length === 0 ? null : (
        <Shortened
          caption={found.length < differences ? `The first ${count(found.length)} differences` : 'Differences'}
          columns={[
            { name: 'Document', cell: ({ id }) => <span class="id">{id}</span> },
            { name: 'Difference', cell: ({ kind }) => words(kind) },
            { name: 'Fields', cell: ({ fields }) => <FieldDifferences fields={fields} /> },
          ]}
          rows={found}
          keyOf={({ id }) => id}
          none=""
        />
      )}
    </>
  );
}

function FieldDifferences({ fields }: Pick<Result<'verification'>['found'][number], 'fields'>) {
  return (
    <ul class="plain">
      {fields.map(({ field, served, log }) => (
        <li key={field}>
          {field}: served <code>{shown(served)}</code>, by the log <code>{shown(log)}</code>
        </li>
      ))}
    </ul>
  );
}

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

function Repaired({ result: { documents } }: { readonly result: Result<'repair'> }) {
  return (
    <Shortened
      caption="Documents that were to be repaired"
      columns={[
        { name: 'Document', cell: ({ id }) => <span class="id">{id}</span> },
        { name: 'Outcome', cell: ({ outcome }) => words(outcome) },
        { name: 'Cause', cell: ({ cause }) => cause ?? '' },
      ]}
      rows={documents}
      keyOf={({ id }) => id}
      none="No document was named."
    />
  );
}
