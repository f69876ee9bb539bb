/** Route that resets the sandbox (docs/api/sandbox.md#starting-again). */
import type { Route } from '../pipeline/route.js';
import { dataAnswer, entity, textSchema } from '../pipeline/schemas.js';
import { clientOf } from '../pipeline/commandContext.js';

const resetSchema = entity('SandboxReset', {
  ended_log_id: textSchema('The log that ends: each later `Gift-Position` starts with another id.'),
});

/**
 * @param reset requests a reset. From then on other requests get 503 until the sandbox is as after its import. Requests
 * in progress are finished, among them the one that requests the reset; a repeat joins it.
 * @throws HttpError `reset_refused`
 */
export function resetRoutes(reset: () => void, logId: string): Route[] {
  return [
    {
      method: 'POST',
      path: '/sandbox/reset',
      operation: 'resetSandbox',
      tag: 'Sandbox',
      caller: 'any',
      noStore: true,
      summary: 'Make the sandbox as it was after its import',
      description:
        "For a client's own token. What was bought goes, with gifts, sessions, limits and webhook endpoints, and the clock is at the real time again; catalogue, clients and users stay. Every token ends. Until `/readyz` answers 200 again, everything else is 503.",
      answers: [
        dataAnswer(
          'The reset has started.',
          resetSchema,
          { ended_log_id: '5e2c1f0a-7c1d-4f5e-9a63-0d8a4c2b9e17' },
          { status: 202 },
        ),
      ],
      errors: ['forbidden', 'reset_refused'],
      async open(early) {
        clientOf(early);
        return async () => {
          reset();
          return { status: 202, body: { data: { ended_log_id: logId } } };
        };
      },
    },
  ];
}
