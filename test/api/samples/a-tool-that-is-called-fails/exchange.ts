import { exact, exchange, matching, post, refused } from '../../exchange.ts'

const OUTSIDE = matching(/outside the folders/)

export default exchange({
  rule: 'answers 500 TOOL_EXECUTION_FAILED with the reason and the content of a tool that fails',
  source: 'decisions.md 2, POST /tools/{name}/call: the tool failed; decisions.md 1, details',
  steps: [
    {
      request: post('/tools/read_file/call', { arguments: { path: '../../etc/passwd' } }),
      expect: refused(
        500,
        'TOOL_EXECUTION_FAILED',
        exact({ tool: 'read_file', reason: OUTSIDE, content: [exact({ type: 'text', text: OUTSIDE })] })
      ),
    },
  ],
})
