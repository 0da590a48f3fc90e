import { any, exact, exchange, get, list, ok, oneOf } from '../../exchange.ts'

export default exchange({
  rule: 'lists tools with description, category and parameters, and the categories',
  source: 'http-api.md "Tool record"; decisions.md 1, tool record',
  steps: [
    {
      request: get('/api/v1/tools'),
      expect: ok(
        exact({
          tools: list(
            exact({ name: any('text'), description: any('text'), category: oneOf('files', 'time'), parameters: any('object') }),
            4
          ),
          categories: ['files', 'time'],
        })
      ),
    },
    {
      request: get('/api/v1/tools'),
      expect: ok({
        tools: [
          { name: 'convert_time', category: 'time' },
          {
            name: 'current_time',
            category: 'time',
            parameters: exact({ time_zone: exact({ type: 'string', description: any('text'), required: false }) }),
          },
          { name: 'list_directory', category: 'files' },
          {
            name: 'read_file',
            category: 'files',
            parameters: exact({
              path: exact({ type: 'string', description: any('text'), required: true }),
              offset: { type: 'integer', required: false },
              limit: { type: 'integer', required: false },
            }),
          },
        ],
      }),
    },
  ],
})
