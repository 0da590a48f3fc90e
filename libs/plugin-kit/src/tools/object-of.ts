/** JSON Schema of an object with these properties and no others; all are required but those named in `optional`. */
export const objectOf = <P extends Readonly<Record<string, object>>>(
  properties: P,
  optional: readonly (keyof P & string)[] = []
) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})
