import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { dayWithin, zonesOf } from '../../src/domain/receiverZone.js';

const test = suite('domain/receiver zone');
const HOURS = { from: 9 * 60, to: 20 * 60 };

const zones = (phone_number: string | null, locale: string | null = null) => zonesOf({ phone_number, locale });
const at = (time: string, of: readonly string[], hours = HOURS) => dayWithin(of, hours, `2027-01-15T${time}:00.000Z`);

test('a number says its country, a language its region, and where neither does it is Britain', () => {
  assert.equal(zones('+33612345678'), ['Europe/Paris']);
  assert.equal(zones('+447781123456'), ['Europe/Guernsey']);
  assert.ok(zones('+12125550123').includes('America/New_York') && zones('+12125550123').includes('Pacific/Honolulu'));
  assert.equal(zones('+447700900123', 'de-DE'), ['Europe/London'], 'an example number has no country');
  assert.equal(zones(null, 'de_DE'), ['Europe/Berlin', 'Europe/Busingen']);
  assert.equal(zones(null, 'zh-Hant-TW'), ['Asia/Taipei']);
  for (const locale of [null, 'de', 'nonsense', 'de-DE-1996-x', 'x-de-DE'])
    assert.equal(zones(null, locale), ['Europe/London'], String(locale));
  assert.equal(zones('+99912345678'), ['Europe/London'], 'a number of no plan');
  assert.equal(zones('+38344123456'), ['Europe/London'], 'Kosovo, whose zones are not known');
});

test('a country’s zones are known where Intl.Locale has a property for them, and where a method', () => {
  const proto = Intl.Locale.prototype as { timeZones?: unknown; getTimeZones?: unknown };
  const [property, method] = (['timeZones', 'getTimeZones'] as const).map((name) =>
    Object.getOwnPropertyDescriptor(proto, name),
  );
  const read = property?.get ?? (method?.value as () => unknown);
  const set = (name: string, descriptor: PropertyDescriptor | undefined): void => {
    Reflect.deleteProperty(proto, name);
    if (descriptor !== undefined) Object.defineProperty(proto, name, descriptor);
  };
  try {
    set('timeZones', undefined);
    set('getTimeZones', { value: read, configurable: true });
    assert.equal(zones('+819012345678'), ['Asia/Tokyo']);
    set('getTimeZones', undefined);
    set('timeZones', { get: read, configurable: true });
    assert.equal(zones('+819012345678'), ['Asia/Tokyo']);
  } finally {
    set('timeZones', property);
    set('getTimeZones', method);
  }
});

test('a message comes within the hours of the receiver’s day', () => {
  assert.is(at('08:59', ['Europe/London']), undefined);
  assert.equal(at('09:00', ['Europe/London']), { day: '2027-01-15', until: '2027-01-15T20:00:00.000Z' });
  assert.equal(at('19:59', ['Europe/London']), { day: '2027-01-15', until: '2027-01-15T20:00:00.000Z' });
  assert.is(at('20:00', ['Europe/London']), undefined);
  assert.is(at('12:00', []), undefined, 'nowhere');
  assert.equal(at('22:30', ['Asia/Tokyo'], { from: 0, to: 24 * 60 })?.day, '2027-01-16');
  assert.equal(dayWithin(['Europe/London'], HOURS, '2027-07-15T08:00:00.000Z')?.until, '2027-07-15T19:00:00.000Z');
});

test('of a country with several zones the hours of each count', () => {
  const american = zones('+12125550123');
  assert.is(at('18:59', american), undefined, 'before nine in Hawaii');
  assert.equal(at('19:00', american), { day: '2027-01-15', until: '2027-01-16T01:00:00.000Z' });
  assert.is(dayWithin(american, HOURS, '2027-01-16T01:00:00.000Z'), undefined, 'after eight in New York');
});

test('zones of which one is a day ahead are all within the hours, which end in the evening of the other', () => {
  const hours = { from: 6 * 60, to: 22 * 60 };
  const apart = ['Asia/Kamchatka', 'Europe/Kaliningrad'];
  assert.equal(at('19:30', apart, hours), { day: '2027-01-16', until: '2027-01-15T20:00:00.000Z' });
  assert.is(at('17:59', apart, hours), undefined, 'before six in Kamchatka');
  assert.is(at('20:00', apart, hours), undefined, 'after ten in Kaliningrad');
  assert.is(at('00:30', ['Asia/Shanghai', 'Asia/Tokyo']), undefined, 'before nine in Shanghai');
});

test('where no hour suits all zones the middle one counts', () => {
  const two = ['Europe/Helsinki', 'Europe/London'];
  assert.equal(at('08:00', two, { from: 10 * 60, to: 12 * 60 })?.until, '2027-01-15T10:00:00.000Z');
  assert.is(at('11:00', two, { from: 10 * 60, to: 12 * 60 }), undefined);
  const apart = ['Asia/Kamchatka', 'Europe/Kaliningrad', 'Asia/Yekaterinburg'];
  const short = { from: 10 * 60, to: 12 * 60 };
  assert.equal(at('05:00', apart, short), { day: '2027-01-15', until: '2027-01-15T07:00:00.000Z' });
  assert.is(at('08:00', apart, short), undefined);
});

test.run();
