// Plain JavaScript in one file. svc reads it and never imports it: each call runs in its own QuickJS context.

const cellOf = value =>
  String(value ?? '')
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
const line = cells => `| ${cells.join(' | ')} |`

export const tools = {
  make_table: {
    description: 'Creates a Markdown table from rows. The keys of the rows are the columns.',
    category: 'text',
    effects: [],
    parameters: {
      type: 'object',
      properties: { rows: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'Rows as objects' } },
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
    description: 'Tries to access data of the server, to show that the sandbox prevents it.',
    category: 'text',
    effects: [],
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    call: () => process.env,
  },
}
