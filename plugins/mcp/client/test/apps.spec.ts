import { expect } from 'chai'
import { createMcpClient } from '../src/client.ts'
import { APP, openRemote } from './support/remote.ts'

describe('the app of a remote server', () => {
  for (const sdk of [1, 2] as const)
    it(`is read from a server by SDK ${sdk}, and an address that the server does not have is refused`, async () => {
      await using remote = await openRemote(sdk)
      await using client = createMcpClient({ url: remote.url, retryAttempts: 0 })
      expect(await client.readApp(APP)).to.deep.equal({ uri: APP, html: '<h1>An app</h1>' })
      const failure = await client.readApp('ui://remote/none').catch((error: unknown) => error)
      expect(failure).to.include({ code: 'MCP_CALL_FAILED' })
      expect((await client.callTool('greet', {})).error, 'the connection goes on').to.equal(null)
    })
})
