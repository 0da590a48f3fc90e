import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { startService } from './support/service.ts'

const EXAMPLES = new URL('../examples/', import.meta.url)
const BIN = fileURLToPath(new URL('../node_modules/.bin', import.meta.url))
const PATH = `${BIN}:${process.env.PATH}`
const folderOf = (name: string) => fileURLToPath(new URL(name, EXAMPLES))

/** The words of the `start` script, which is what its README says to type. */
async function startOf(name: string): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(new URL(`${name}/package.json`, EXAMPLES), 'utf8')) as {
    scripts: { start: string }
  }
  return scripts.start.split(' ')
}

const serve = async (name: string) => startService({ command: await startOf(name), cwd: folderOf(name), env: { PATH } })

describe('the examples', () => {
  it('are all started here', async () => {
    expect((await readdir(EXAMPLES)).sort()).to.deep.equal(['custom-tool', 'embed', 'hello-plugin'])
  })

  it('hello-plugin says hello', async () => {
    await using service = await serve('hello-plugin')
    const client = createClient(service.url, { keepAlive: false })
    expect((await client.get('/hello')).body).to.deep.equal({ hello: 'world' })
    expect((await client.get('/health')).body, 'the curated plugins stay').to.include({ status: 'healthy' })
  })

  it('custom-tool rolls dice in a chat', async () => {
    await using service = await serve('custom-tool')
    const client = createClient(service.url, { keepAlive: false })
    const { body } = await client.post('/api/v1/chat', { message: '/tool roll_dice {"count": 2}' })
    const [use] = (body as { tools_used: { tool: string; success: boolean }[] }).tools_used
    expect(use).to.include({ tool: 'roll_dice', success: true })
    expect((body as { response: string }).response).to.match(/\d \+ \d = \d/)
    const { tools_used } = (await client.post('/api/v1/chat', { message: '/tool roll_dice {"count": 11}' })).body as {
      tools_used: { success: boolean }[]
    }
    expect(tools_used[0], 'its configuration allows ten dice').to.include({ success: false })
  })

  it('embed runs a host inside a program', async () => {
    const [command = '', ...args] = await startOf('embed')
    const { stdout } = await promisify(execFile)(command, [...args, 'hello'], {
      cwd: folderOf('embed'),
      env: { PATH, SVC_HOME: '/nowhere' },
    })
    expect(stdout).to.equal('You said: hello, please\n')
  })
})
