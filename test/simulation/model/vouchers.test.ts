/** Codes of vouchers, held against histories made by hand; and everything together. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import * as by from './handmade.js';
import { BOUGHT, redeem, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';
import { check } from './model.js';
import { checkVouchers } from './vouchers.js';

const test = suite('codes in a history');

const pooled = { ...by.INSTALLATION, pools: new Map([['pool', ['P1', 'P2']]]) };
const { explained, wrong } = judgedBy((history) => checkVouchers(history, pooled));

function made(gift: string, code: string, segment = 'seg'): Observation {
  const body = { giftId: gift, segment: { id: segment }, data: [{ type: 'qr', label: '', value: code }] };
  return seen('bob', { kind: 'makeVoucher', gift, version: 2 }, [20, 30], { status: 200, body });
}

test('gives each code to one gift', () => {
  explained(made('g1', 'A'), made('g1', 'A'), made('g2', 'B'), made('g3', 'A', 'other'));
  wrong([made('g1', 'A'), made('g2', 'A')], /Two gifts have one code/);
});

test('takes codes of a pool from it', () => {
  explained(made('g1', 'P1', 'pool'), made('g2', 'P2', 'pool'));
  wrong([made('g1', 'X', 'pool')], /The pool of pool has no such code/);
});

test('names the rule of each finding of a whole history', () => {
  const twice = [
    seen('till', redeem(), [20, 30], by.redeemed('r1', 25)),
    seen('bob', redeem(), [31, 40], by.redeemed('r2', 35)),
  ];
  const judgement = { installation: by.INSTALLATION };
  assert.deepEqual(
    check([BOUGHT, ...twice.slice(0, 1)], {
      ...judgement,
      ledger: [{ kind: 'charge', transaction: 't1', pence: 350 }],
    }),
    [],
  );
  const rules = check([BOUGHT, ...twice], { ...judgement, ledger: [] }).map(({ rule }) => rule);
  assert.deepEqual(rules, ['linearizable', 'ledger']);
});

test.run();
