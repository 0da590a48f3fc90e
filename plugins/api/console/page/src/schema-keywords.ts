// The keywords of JSON Schema that the schema of a reply can use, as a schema: the editor offers them. The server decides about them.

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

const schema = { $ref: '#/$defs/schema' }
const list = { items: schema }
const byName = { additionalProperties: schema }
const about = (description: string) => ({ description })

const KEYWORDS = {
  type: { ...about('Kind of the value'), enum: TYPES, items: { enum: TYPES } },
  title: {},
  description: about('What the model reads about the value'),
  properties: { ...about('Members of the object, each with its schema'), ...byName },
  required: about('Names of the members that must be there'),
  additionalProperties: { ...about('Schema of other members, or false'), ...schema },
  items: { ...about('Schema of each item of the list'), ...schema },
  enum: about('All values that are allowed'),
  const: about('The only value'),
  default: {},
  examples: {},
  minimum: {},
  maximum: {},
  exclusiveMinimum: {},
  exclusiveMaximum: {},
  multipleOf: {},
  minLength: about('Least number of characters'),
  maxLength: about('Greatest number of characters'),
  pattern: about('Regular expression that the text matches'),
  format: { enum: ['date', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'time', 'uri', 'uuid'] },
  minItems: {},
  maxItems: {},
  uniqueItems: { type: 'boolean' },
  minProperties: {},
  maxProperties: {},
  anyOf: { ...about('Schemas of which at least one is met'), ...list },
  oneOf: { ...about('Schemas of which exactly one is met'), ...list },
  allOf: { ...about('Schemas that are all met'), ...list },
  $ref: about('Pointer to a schema: #/$defs/name'),
  $defs: { ...about('Schemas that $ref names'), ...byName },
}

export const JSON_SCHEMA = { ...schema, $defs: { schema: { properties: KEYWORDS } } }
