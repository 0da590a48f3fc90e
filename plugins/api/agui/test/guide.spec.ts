import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { serveAgents } from './support/agent.ts'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const run = promisify(execFile)

describe('the guide of AG-UI', () => {
  it('has a program that asks an agent, and runs its own tool', async () => {
    const guide = await readFile(join(ROOT, 'docs/guides/use-ag-ui.md'), 'utf8')
    const [, program = ''] = /```js\n(\/\/ ask-agent\.mjs\n.*?)```/s.exec(guide) ?? []
    const folder = await mkdtemp(join(tmpdir(), 'svc-agui-guide-'))
    try {
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
      await writeFile(join(folder, 'ask-agent.mjs'), program)
      await using server = await serveAgents()
      const ask = async (message: string) =>
        (
          await run(process.execPath, ['ask-agent.mjs', message], {
            cwd: folder,
            env: { PATH: process.env.PATH, SVC_URL: server.url },
          })
        ).stdout
      expect(await ask('hello')).to.equal('You said: hello\n')
      expect(await ask('/tool get_weather {"city":"Ulm"}')).to.contain('sunny in Ulm')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
