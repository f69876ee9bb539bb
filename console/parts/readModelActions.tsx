/** What can be done to a read model: each has a reason, and leaves a record of who did it. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ReadModelStatus } from '../../src/ops/status/status.js';
import { Failed, post } from '../service/call.js';
import { projectionPath, type Task } from '../service/readModels.js';
import { Action, type Field, type Values } from './action.js';
import { buildName } from './readModelParts.js';

const IDS: Field = {
  name: 'ids',
  label: 'Documents',
  type: 'lines',
  hint: 'Their ids, one on each line.',
};
const SAMPLE: Field = {
  name: 'sample',
  label: 'Random documents only',
  type: 'number',
  optional: true,
  hint: 'How many, up to 10,000: quick, but missing documents are not found. Empty: all.',
};
/** Offered once a log was refused (`refuseAlteredLog.ts`). */
const ALTERED: Field = {
  name: 'altered',
  label: 'Also from a log that is not what was signed',
  type: 'checkbox',
  optional: true,
  hint: 'What was altered gets into the read model. This is recorded.',
};

const altered = (values: Values): object => (values['altered'] === 'true' ? { altered: true } : {});
const reason = (values: Values): object => ({ reason: values['reason'] ?? '' });

const isOfAlteredLog = (message: string | null | undefined): boolean =>
  message?.includes('not what was signed') === true;

interface Answer {
  readonly data: Task<'repair' | 'verification'>;
}

/** @returns what came of a task that may be in progress still */
function outcome({ data: { state, failure } }: Answer): string {
  if (state === 'running') return 'It is in progress: its progress is shown below.';
  if (state === 'done') return 'It is done: its result is shown below.';
  throw new Failed(failure ?? 'It was interrupted: start it again.');
}

interface ActionsProps {
  readonly status: ReadModelStatus;
  readonly tasks: {
    readonly rebuild: Task<'rebuild'> | undefined;
    readonly verification: Task<'verification'> | undefined;
    readonly repair: Task<'repair'> | undefined;
  };
  /** Called after each try: a refusal, too, is something new to show. */
  readonly tried: () => void;
}

export function ReadModelActions({ status, tasks, tried }: ActionsProps) {
  const { name, rebuild, previous, quarantined } = status;
  const path = projectionPath(name);
  const wasRefused = [tasks.rebuild, tasks.repair].some((task) => isOfAlteredLog(task?.failure));
  const maybeAltered = wasRefused ? [ALTERED] : [];
  const found = tasks.verification?.result?.differences ?? 0;
  const send = async <T,>(what: string, body: object, key: string): Promise<T> =>
    post<T>(`${path}/${what}`, body, key).finally(tried);
  const repair = async (values: Values, chosen: object, key: string): Promise<ComponentChildren> =>
    outcome(await send<Answer>('repair', { ...chosen, ...altered(values), ...reason(values) }, key));
  return (
    <div class="actions">
      <Action
        label="Verify"
        effect="The log is folded into a temporary copy, which is compared with the served documents. They stay in use and are not changed."
        fields={[SAMPLE]}
        roles={['support', 'auditor']}
        run={async (values, key) => {
          const sample = values['sample'] ?? '';
          const body = { ...(sample === '' ? {} : { sample: Number(sample) }), ...reason(values) };
          return outcome(await send<Answer>('verification', body, key));
        }}
      />
      {found === 0 ? null : (
        <Action
          label="Repair what the verification found"
          effect={`Documents that differed are folded from the log, and replaced while they are served: ${found} were found.`}
          fields={maybeAltered}
          run={async (values, key) => repair(values, { found: true }, key)}
        />
      )}
      <Action
        label="Repair single documents"
        effect={`The documents are folded from the log, and replaced while they are served. Quarantined ones return to service if this release can fold them: ${quarantined} are quarantined.`}
        fields={[IDS, ...maybeAltered]}
        run={async (values, key) => repair(values, { ids: (values['ids'] ?? '').trim().split(/[\s,]+/) }, key)}
      />
      <Action
        label="Rebuild"
        effect="A new build is made from the whole log; one that was interrupted goes on. It replaces the build in use once it has caught up. Readers notice nothing, and the former build is kept for a day."
        fields={maybeAltered}
        run={async (values, key) => {
          const body = { ...altered(values), ...reason(values) };
          const { data } = await send<{ readonly data: object | null }>('rebuild', body, key);
          return data === null
            ? 'The log is compared with what was signed first. This page shows what comes of it.'
            : 'The rebuild is requested: its progress is shown on this page.';
        }}
      />
      {rebuild === null ? null : (
        <Action
          label={rebuild.kind === 'rollback' ? 'Abort the rollback' : 'Abort the rebuild'}
          effect={`It ends before ${buildName(rebuild)} is in use. What a rebuild has built so far is dropped, and the build in use stays.`}
          run={async (values, key) => {
            await send('abort', reason(values), key);
            return 'It is aborted.';
          }}
        />
      )}
      {previous === null ? null : (
        <Action
          label="Roll back"
          effect={`The build of before the last rebuild, ${buildName(previous)}, is brought up to date and put in use again.`}
          run={async (values, key) => {
            await send('rollback', reason(values), key);
            return 'The rollback is requested: its progress is shown on this page.';
          }}
        />
      )}
    </div>
  );
}

/** Rebuilds all read models, one after the other. */
export function RebuildAll({ tried }: { readonly tried: () => void }) {
  const [wasRefused, setRefused] = useState(false);
  return (
    <Action
      label="Rebuild all"
      effect="A new build of each read model is made from the whole log, one after the other. Each replaces the one in use once it has caught up; readers notice nothing."
      fields={wasRefused ? [ALTERED] : []}
      run={async (values, key) => {
        try {
          await post('ops/projections/rebuild', { ...altered(values), ...reason(values) }, key);
          return 'It is requested. Where nothing starts within a minute, the page of a read model says why.';
        } catch (error) {
          setRefused(error instanceof Failed && isOfAlteredLog(error.message));
          throw error;
        } finally {
          tried();
        }
      }}
    />
  );
}
