/** What every answer must be by itself, whatever else happened: its form, its headers, its times. */
import { ERRORS } from './errorTable.js';
import type { Finding, Leeway } from './finding.js';
import { type Answer, type History, type Observation, describe, field, textField } from './history.js';

/** Findings about single answers. */
export function checkAnswers(history: History, leeway: Leeway): Finding[] {
  return history.flatMap((observation, index) => {
    const why = faultOf(observation, leeway);
    return why === undefined ? [] : [{ rule: 'answer', text: `${why}\n${describe(observation, index)}` }];
  });
}

function faultOf(observation: Observation, leeway: Leeway): string | undefined {
  const { answer } = observation;
  if (answer === undefined) return undefined;
  if (answer.status >= 400) return faultOfError(answer);
  return faultOfTimes(observation, answer, leeway) ?? faultOfWait(observation, answer, leeway);
}

/** docs/api/errors.md */
function faultOfError({ status, headers, body }: Answer): string | undefined {
  if (status === 500) return 'Something unforeseen happened to the service.';
  const code = headers['error-code'];
  if (code === undefined) return 'An error carries the header Error-Code.';
  const row = ERRORS.get(code);
  if (row === undefined) return `The table of errors has no code ${code}.`;
  if (row.status !== status) return `The code ${code} has the status ${row.status}.`;
  const message = textField(body, 'error');
  if (message === undefined) return 'The body of an error is {"error": message}.';
  if (row.message !== undefined && row.message !== message) return `The code ${code} has the message ${row.message}`;
  if (status === 405 && headers['allow'] === undefined) return 'A 405 carries Allow.';
  if ((status === 503 || status === 429) && headers['retry-after'] === undefined)
    return `A ${status} carries Retry-After.`;
  return undefined;
}

/** What was made by the request bears a time between the request and its answer. */
function faultOfTimes(observation: Observation, answer: Answer, { clockMs }: Leeway): string | undefined {
  const { operation, sent, answered } = observation;
  if (answer.headers['idempotent-replayed'] !== undefined || answered === undefined) return undefined;
  const at = timeOf(
    operation.kind === 'unredeem' && operation.redemption.startsWith('key:') ? '' : operation.kind,
    answer,
  );
  if (at === undefined) return undefined;
  const [name, text, exactMs] = at;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return `${name} is not a time.`;
  if (ms < sent - clockMs - exactMs) return `${name} is before the request was sent.`;
  return ms > answered + clockMs ? `${name} is after the answer came.` : undefined;
}

/** docs/api/purchases.md#purchase-outcome: the answer waits for the charge. */
function faultOfWait(
  { operation, sent, answered = Infinity }: Observation,
  { headers, body }: Answer,
  { chargeWaitMs = 0 }: Leeway,
): string | undefined {
  if (operation.kind !== 'purchase' || headers['idempotent-replayed'] !== undefined) return undefined;
  if (textField(body, 'data', 'status') !== 'pending' || answered - sent >= chargeWaitMs) return undefined;
  return `The answer of a purchase waits ${chargeWaitMs} ms for the charge.`;
}

/** The time of what was made, with its name and how exact it is, ms. */
function timeOf(kind: string, { body }: Answer): readonly [string, string, number] | undefined {
  const text = (name: string): string => String(field(body, 'data', name));
  switch (kind) {
    case 'redeem':
      return ['creation_at', text('creation_at'), 1];
    case 'unredeem':
      return ['updated_at', text('updated_at'), 1];
    case 'purchase':
      return ['created_at', `${text('created_at').replace(' ', 'T')}Z`, 1_000];
    default:
      return undefined;
  }
}
