import { type Finding, FINDING_CODES, HARMS } from '../../ops/diagnosis/index.js';
import { choiceSchema, dataAnswer, entity, listSchema, textSchema } from '../pipeline/schemas.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, STAFF } from './frame.js';

const findingSchema = entity('Finding', {
  code: choiceSchema(FINDING_CODES),
  harm: choiceSchema(HARMS, 'Who is harmed; `risk`: nobody yet.'),
  what: textSchema('What is wrong, with names, numbers and times.'),
  means: textSchema('What it means for people and money.'),
  command: textSchema('The one command that mends it, or shows what to mend.'),
} satisfies Record<keyof Finding, Schema>);

const example: Finding = {
  code: 'parked_purchases',
  harm: 'money',
  what: '3 × purchase charge, 2026-05-04T12:30:00.000Z to 2026-05-04T12:41:00.000Z, such as 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5: the provider was in trouble for 24 hours',
  means: 'Purchases were given up: buyers paid, or wait to pay, and have no gifts.',
  command: 'gift parked retry --group 5d41c0ffee12 --reason "<why>"',
};

export function diagnosisRoutes({ diagnose }: Pick<OpsDeps, 'diagnose'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/diagnosis',
      operation: 'diagnose',
      summary: 'What is wrong',
      description:
        'Looks at all that the service knows of itself, and lists what is wrong, the greatest harm to people and money first. An empty list: nothing is wrong. What could not be looked at is a finding (`not_known`). Takes two seconds after a minute without calls.',
      tag: 'Diagnosis',
      roles: STAFF,
      watched: true,
      evenUnrecorded: true,
      answers: [dataAnswer('What is wrong.', listSchema(findingSchema), [example])],
      async handle() {
        const found = await diagnose();
        return { body: { data: found }, shown: found.length };
      },
    },
  ];
}
