import type { Answer, SuccessAnswer } from '../pipeline/route.js';
import { choiceSchema, entity, jsonAnswer } from '../pipeline/schemas.js';

export const received = (outcome: 'recorded' | 'known' | 'ignored'): Answer => ({
  body: { received: true, outcome },
});

export const receivedAnswers = (title: string, ignored: string): SuccessAnswer[] => [
  jsonAnswer(
    'Received.',
    entity(title, {
      received: { type: 'boolean', const: true },
      outcome: choiceSchema(
        ['recorded', 'known', 'ignored'],
        `\`recorded\` now; \`known\`: nothing in it is new; \`ignored\`: ${ignored}.`,
      ),
    }),
    { received: true, outcome: 'recorded' },
  ),
];
