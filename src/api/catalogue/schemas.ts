/** Schemas and examples (docs/api/gifts.md#gift, docs/api/catalogue.md#tile-pins). */
import type { Schema } from '../pipeline/route.js';
import { entity } from '../representation/schemas.js';

const ID = { type: 'string', description: 'An identifier.' } as const;

function ids(description: string): Schema {
  return { type: 'array', items: { type: 'string' }, description };
}

export const productSchema = entity('Product', {
  id: ID,
  brand_id: { type: 'string', description: 'The brand it is a product of.' },
  name: { type: 'string' },
  description: { type: 'string', description: 'May be empty.' },
  sale_price: { type: 'integer', minimum: 0, description: 'Price in pence.' },
  price: { type: 'string', pattern: '^\\d+\\.\\d{2}$', description: 'Price in pounds, with two decimals.' },
  image_url: { type: 'string', description: 'May be empty.' },
  active: { type: 'boolean', description: 'False: no longer sold, but known from gifts bought earlier.' },
  segments: ids('Ids of the segments its vouchers may be of.'),
  valid_days: { type: 'integer', minimum: 1, description: 'How many days after the purchase a gift of it expires.' },
});

export const brandSchema = entity('Brand', {
  id: ID,
  name: { type: 'string' },
  description: { type: 'string', description: 'May be empty.' },
  image_url: { type: 'string', description: 'May be empty.' },
  merchant_id: { type: 'string', description: 'The merchant whose users redeem its gifts.' },
  integration_id: {
    type: ['string', 'null'],
    description: 'Its main integration method; ids 1 to 6 have V1 vouchers.',
  },
  active: { type: 'boolean' },
  consolidated: { type: 'integer', enum: [0, 1], description: '1 for a consolidated brand.' },
  products: ids('Ids of the active products specific to the brand that the caller may see.'),
  consolidated_products: ids(
    'Ids of the active consolidated products that the brand accepts and the caller may see; empty for a consolidated brand.',
  ),
});

export const categorySchema = entity('Category', {
  id: ID,
  name: { type: 'string' },
  image_url: { type: 'string', description: 'May be empty.' },
  type: { type: 'string', const: 'Category' },
  featured: { type: 'integer', enum: [0, 1] },
  products: ids('Ids of the associated products that the caller may see.'),
});

export const storeSchema = entity('Store', {
  id: ID,
  brand_id: { type: 'string', description: 'The brand it serves.' },
  name: { type: 'string' },
  address: { type: 'string', description: 'May be empty.' },
  postcode: { type: 'string', description: 'May be empty.' },
  longitude: { type: 'number', minimum: -180, maximum: 180, description: 'Degrees, WGS 84.' },
  latitude: { type: 'number', minimum: -90, maximum: 90, description: 'Degrees, WGS 84.' },
});

export const segmentSchema = entity('Segment', {
  id: ID,
  name: { type: 'string' },
  voucherType: { type: 'string', description: 'What its vouchers are shown as: `qr`, `alpha/qr` or `alpha/pin`.' },
  expiry: { type: 'integer', description: 'How many days a voucher of it is valid, at most as long as its gift.' },
  configuration: { type: 'object', additionalProperties: true, description: 'Settings of the voucher provider.' },
});

export const integrationSchema = entity('Integration', {
  id: ID,
  name: { type: 'string' },
});

const DEGREES = { type: 'number', description: 'Degrees, WGS 84.' } as const;

const boxSchema = entity('Box', { west: DEGREES, south: DEGREES, east: DEGREES, north: DEGREES });

const storePinSchema = entity('StorePin', {
  id: { type: 'string', description: "The store's id." },
  type: { type: 'string', const: 'store' },
  brand_id: { type: 'string' },
  name: { type: 'string' },
  longitude: DEGREES,
  latitude: DEGREES,
});

const clusterPinSchema = entity('ClusterPin', {
  id: { type: 'string', description: 'The same for the same stores and granularity.' },
  type: { type: 'string', const: 'cluster' },
  count: { type: 'integer', minimum: 2, description: 'How many stores it stands for.' },
  longitude: DEGREES,
  latitude: DEGREES,
  area: boxSchema,
});

export const tileSchema = entity('Tile', {
  id: { type: 'string', pattern: '^\\d+/\\d+/\\d+$', description: 'The Web Mercator tile: z/x/y.' },
  bounds: boxSchema,
  pins: { type: 'array', items: { oneOf: [storePinSchema, clusterPinSchema] } },
});

export const productExample = {
  id: 'product-flat-white',
  brand_id: 'brand-kettle-and-crumb',
  name: 'Flat white',
  description: 'A double shot and steamed milk, hot or iced.',
  sale_price: 375,
  price: '3.75',
  image_url: 'https://images.example/flat-white.jpg',
  active: true,
  segments: ['segment-hot-drinks'],
  valid_days: 365,
};

export const brandExample = {
  id: 'brand-kettle-and-crumb',
  name: 'Kettle & Crumb',
  description: 'Coffee and baking on the high street.',
  image_url: 'https://images.example/kettle-and-crumb.png',
  merchant_id: 'merchant-kettle-and-crumb',
  integration_id: '1',
  active: true,
  consolidated: 0,
  products: ['product-flat-white'],
  consolidated_products: [],
};

export const categoryExample = {
  id: 'category-coffee',
  name: 'Coffee & tea',
  image_url: '',
  type: 'Category',
  featured: 1,
  products: ['product-flat-white'],
};

export const storeExample = {
  id: 'store-kettle-covent-garden',
  brand_id: 'brand-kettle-and-crumb',
  name: 'Kettle & Crumb Covent Garden',
  address: '12 Neal Street, London',
  postcode: 'WC2H 9LY',
  longitude: -0.1256,
  latitude: 51.5142,
};

export const segmentExample = {
  id: 'segment-hot-drinks',
  name: 'Hot drinks',
  voucherType: 'qr',
  expiry: 90,
  configuration: {},
};

export const tileExample = {
  id: '16/32745/21790',
  bounds: { west: -0.1263427734375, south: 51.512161249555156, east: -0.120849609375, north: 51.51557978375591 },
  pins: [
    {
      id: 'store-kettle-covent-garden',
      type: 'store',
      brand_id: 'brand-kettle-and-crumb',
      name: 'Kettle & Crumb Covent Garden',
      longitude: -0.1256,
      latitude: 51.5142,
    },
    {
      id: '5b1f0c2a9d3e4f608172',
      type: 'cluster',
      count: 3,
      longitude: -0.1231,
      latitude: 51.5137,
      area: { west: -0.1243, south: 51.5129, east: -0.1212, north: 51.5148 },
    },
  ],
};
