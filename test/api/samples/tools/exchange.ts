import { any, exact, exchange, get, including, list, ok, oneOf } from '../../exchange.ts'

export default exchange({
  rule: 'lists tools with description, category and parameters, and the categories',
  source: 'http-api.md "Tool record"; decisions.md 1, tool record',
  steps: [
    {
      request: get('/api/v1/tools'),
      expect: ok(
        exact({
          tools: list(
            exact({
              name: any('text'),
              description: any('text'),
              category: oneOf('files', 'search', 'web', 'code', 'git', 'text', 'time', 'teams'),
              parameters: any('object'),
            })
          ),
          categories: including('files', 'search', 'git', 'time'),
        })
      ),
    },
    {
      request: get('/api/v1/tools'),
      expect: ok({
        tools: including(
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
          { name: 'search_text', category: 'search' },
          { name: 'git_status', category: 'git' }
        ),
      }),
    },
  ],
})
