// Plain JavaScript in one file. svc reads it and never imports it: each call runs in a world of its own, in QuickJS.

const cellOf = value =>
  String(value ?? '')
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
const line = cells => `| ${cells.join(' | ')} |`

export const tools = {
  make_table: {
    description: 'Makes a Markdown table of rows; the keys of the rows are its columns.',
    category: 'text',
    effects: [],
    parameters: {
      type: 'object',
      properties: { rows: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'the rows, objects' } },
      required: ['rows'],
      additionalProperties: false,
    },
    call({ rows }, { config }) {
      if (rows.length > config.most_rows) throw new Error(`a table has at most ${config.most_rows} rows`)
      const columns = [...new Set(rows.flatMap(row => Object.keys(row)))]
      const body = rows.map(row => line(columns.map(column => cellOf(row[column]))))
      return [line(columns), line(columns.map(() => '---')), ...body].join('\n')
    },
  },
  look_around: {
    description: 'Tries to read what belongs to the server, to show that it cannot.',
    category: 'text',
    effects: [],
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    call: () => process.env,
  },
}
