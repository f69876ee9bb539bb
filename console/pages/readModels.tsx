/** All read models and process managers: how far, how fast, who leads, and what is wrong with them. */
import type { FailingPart, ProcessManagerStatus, ReadModelStatus, StatusEntry } from '../../src/ops/status/status.js';
import { may } from '../parts/action.js';
import { Page, Shown } from '../parts/page.js';
import { RebuildAll } from '../parts/readModelActions.js';
import { buildName, Holder, lagEvents, lagSeconds, Rates } from '../parts/readModelParts.js';
import { type Column, Table } from '../parts/table.js';
import { count, Id, Time } from '../parts/text.js';
import { useLoaded } from '../service/loaded.js';
import { allStatus, statusEveryMs, useSamples } from '../service/readModels.js';

type Entry = ReadModelStatus | ProcessManagerStatus;

const readModelPath = (name: string): string => `/read-models/${encodeURIComponent(name)}`;

const COMMON: readonly Column<Entry>[] = [
  { name: 'Position', cell: ({ position }) => <span class="id">{position ?? '–'}</span> },
  { name: 'Events behind', cell: lagEvents, number: true },
  { name: 'Time behind', cell: lagSeconds, number: true },
  { name: 'Events/s', cell: ({ per_second }) => count(per_second), number: true },
  { name: 'Led by', cell: (one) => <Holder of={one} /> },
];

const READ_MODELS: readonly Column<ReadModelStatus>[] = [
  { name: 'Read model', cell: ({ name }) => <Id of={name} to={readModelPath} /> },
  { name: 'State', cell: stateOf },
  { name: 'Build', cell: (one) => buildName(one) },
  ...COMMON,
  { name: 'Quarantined', cell: ({ quarantined }) => count(quarantined), number: true },
];

const PROCESS_MANAGERS: readonly Column<ProcessManagerStatus>[] = [
  { name: 'Process manager', cell: ({ name }) => name },
  ...COMMON,
  { name: 'In progress', cell: ({ in_flight }) => count(in_flight), number: true },
  { name: 'Parked', cell: ({ parked }) => count(parked), number: true },
];

const PARTS: readonly Column<FailingPart>[] = [
  { name: 'Part', cell: ({ name }) => name },
  { name: 'Process', cell: ({ process }) => <span class="id">{process}</span> },
  { name: 'Since', cell: ({ since }) => <Time at={since} /> },
  { name: 'Failures in a row', cell: ({ failures }) => count(failures), number: true },
  { name: 'Cause', cell: ({ why }) => why ?? '' },
];

function stateOf({ invalid_position, rebuild, served, in_use, lag_events }: ReadModelStatus): string {
  if (invalid_position !== null) return 'stored position is not in the log';
  if (rebuild !== null) return `${rebuild.kind}: ${shareOf(rebuild)}`;
  if (served !== null) return 'in use, of another release';
  if (!in_use) return 'not in use yet';
  return lag_events === 0 ? 'up to date' : 'catching up';
}

function shareOf({ state, holder, events, total }: NonNullable<ReadModelStatus['rebuild']>): string {
  if (state !== 'building') return state;
  if (events !== null && total !== null && total > 0) return `${Math.floor((events / total) * 100)} %`;
  return holder === null ? 'waits for its turn' : state;
}

const isOf =
  <K extends StatusEntry['kind']>(kind: K) =>
  (one: StatusEntry): one is Extract<StatusEntry, { readonly kind: K }> =>
    one.kind === kind;

/** Events a second of all read models together, those of builds in progress apart. */
function ratesOf(entries: readonly StatusEntry[]): readonly number[] {
  const models = entries.filter(isOf('projection'));
  const sum = (of: (one: ReadModelStatus) => number): number => models.reduce((all, one) => all + of(one), 0);
  return [sum(({ per_second }) => per_second), sum(({ rebuild }) => rebuild?.per_second ?? 0)];
}

export function ReadModels() {
  const status = useLoaded(async (signal) => allStatus(signal), [], { everyMs: statusEveryMs });
  const samples = useSamples(status.value, ratesOf);
  return (
    <Page title="Read models" lead="What answers are read from. The log has everything that they show.">
      <Shown of={status}>
        {(entries) => (
          <>
            <Table
              caption="Read models"
              columns={READ_MODELS}
              rows={entries.filter(isOf('projection'))}
              keyOf={({ name }) => name}
              none="There is none."
            />
            {may(['support']) ? (
              <div class="actions">
                <RebuildAll tried={status.reload} />
              </div>
            ) : null}
            <Rates samples={samples} names={['Builds that readers use', 'Builds in progress']} />
            <Table
              caption="Process managers"
              columns={PROCESS_MANAGERS}
              rows={entries.filter(isOf('process'))}
              keyOf={({ name }) => name}
              none="There is none."
            />
            <Table
              caption="Parts that fail"
              columns={PARTS}
              rows={entries.filter(isOf('part'))}
              keyOf={({ name, process }) => `${name} ${process}`}
              none="No part of any process fails."
            />
          </>
        )}
      </Shown>
    </Page>
  );
}
