import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeWorkspace } from '../cli/test/support/svc.ts'

const KEY = 'sk-canary-of-the-command'

describe('svc connect with a server', () => {
  it('finds the server of its home, with its key, and reports what is wrong', async () => {
    await using space = await makeWorkspace()
    const env = { HOME: space.folder, SVC_API_KEY: KEY }
    const config = await space.write(
      'svc.config.yaml',
      'server: { auth: { enabled: true } }\nplugins: [{ use: "@svc/plugin-anthropic-api", enabled: false }]\n'
    )
    const none = await space.svc(['connect', 'pi'], { env })
    expect(none.code).to.equal(1)
    expect(none.err).to.match(/^SERVER_NONE\n/)
    const { url } = await space.serve(['--config', config], { env })

    const written = await space.svc(['connect', 'opencode', '--write'], { env })
    expect(written.code, written.err).to.equal(0)
    const settings = await readFile(join(space.folder, '.config/opencode/opencode.json'), 'utf8')
    expect(JSON.parse(settings).provider.svc.options).to.deep.equal({ baseURL: `${url}/v1`, apiKey: '{env:SVC_API_KEY}' })
    expect(written.out + written.err + settings).to.not.include(KEY)

    const refused = await space.svc(['connect', 'pi', '--url', url], { env: { ...env, SVC_API_KEY: 'sk-wrong' } })
    expect(refused.code).to.equal(1)
    expect(refused.err).to.match(/^AUTHENTICATION_FAILED\n(?!.*\[object)/)
    const unknown = await space.svc(['connect', 'pi', '--model', 'local/lcoal-1'], { env })
    expect(unknown.err).to.match(/^MODEL_UNKNOWN\n[\s\S]*did you mean "local\/local-1"\?/)
    const gemini = await space.svc(['connect', 'gemini'], { env })
    expect(gemini.code, gemini.err).to.equal(0)
    expect(gemini.out).to.include(`GOOGLE_GEMINI_BASE_URL='${url}'`)
    const missing = await space.svc(['connect', 'claude-code'], { env })
    expect(missing.err).to.match(/^ENDPOINT_MISSING\n[\s\S]*\/v1\/messages/)
  })

  it('has help, and suggestions for typing errors', async () => {
    await using space = await makeWorkspace()
    expect((await space.svc(['connect', '--help'])).out)
      .to.include('codex|claude-code|opencode')
      .and.include('--key-env')
    const typed = await space.svc(['conect', 'codex'])
    expect(typed.code).to.equal(2)
    expect(typed.err).to.include('did you mean "svc connect"?')
    expect((await space.svc(['connect', 'codx'])).err).to.include('Expected codx to be one of: codex')
  })
})
