// What the suite starts for each scenario: hands it to the test's own process and ends as it ended there. A process with our client in it would take a second each.
import { connect } from 'node:net'

const { MCP_CONFORMANCE_SCENARIO: name, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const socket = connect(process.argv[2])
socket.end(JSON.stringify({ url: process.argv.at(-1), name, context: JSON.parse(context) }))
let answer = ''
for await (const chunk of socket.setEncoding('utf8')) answer += chunk
if (answer !== 'good') {
  process.stderr.write(`${answer}\n`)
  process.exitCode = 1
}
