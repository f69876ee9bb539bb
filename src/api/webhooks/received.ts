import type { Answer, SuccessAnswer } from '../pipeline/route.js';
import { entity } from '../representation/schemas.js';

export const received = (outcome: 'recorded' | 'known' | 'ignored'): Answer => ({
  status: 200,
  body: { received: true, outcome },
});

export const receivedAnswers = (title: string, ignored: string): SuccessAnswer[] => [
  {
    status: 200,
    description: 'Received.',
    schema: entity(title, {
      received: { type: 'boolean', const: true },
      outcome: {
        type: 'string',
        enum: ['recorded', 'known', 'ignored'],
        description: `\`recorded\` now; \`known\`: nothing in it is new; \`ignored\`: ${ignored}.`,
      },
    }),
    example: { received: true, outcome: 'recorded' },
  },
];
