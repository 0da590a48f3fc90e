// acpx, a client of the Agent Client Protocol that others wrote, starts `svc acp` as an editor does.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { COMPILED, SVC } from '../support/entry.ts'
import { type Agent, agentHome, missing } from './support/agents.ts'

const PROGRAM: Pick<Agent, 'title' | 'program'> = { title: 'acpx', program: 'acpx/dist/cli.js' }
const COMMAND = [process.execPath, ...SVC, 'acp'].map(word => `'${word}'`).join(' ')

/** A folder with a profile, and what runs acpx in it. */
async function openFolder() {
  const place = await agentHome()
  await writeFile(
    join(place.work, 'profiles.yaml'),
    'default: edit\nprofiles:\n  edit: { tools: [editor_read_file, editor_write_file] }\n'
  )
  const variables = { ...COMPILED, SVC_HOME: join(place.home, 'svc') }
  return {
    work: place.work,
    run: (...args: string[]) =>
      place.run({ ...PROGRAM, args: () => ['--agent', COMMAND, ...args] }, '', 'unused', variables as Record<string, string>),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  }
}

const writeIn = (path: string) => `/tool editor_write_file ${JSON.stringify({ path, content: 'written by a tool' })}`

const reason = missing({ ...PROGRAM, args: () => [] })
const group = reason === undefined ? describe : describe.skip

group('an editor (acpx)', () => {
  it('gets an answer', async () => {
    await using folder = await openFolder()
    const { code, out } = await folder.run('exec', 'hello there')
    expect(code, out).to.equal(0)
    expect(out).to.contain('You said: hello there').and.contain('[done] end_turn')
  })

  it('writes a file for a tool after its user has allowed it', async () => {
    await using folder = await openFolder()
    const { code, out } = await folder.run('--approve-all', 'exec', writeIn(join(folder.work, 'a.txt')))
    expect(code, out).to.equal(0)
    expect(out).to.contain('kind: edit').and.contain('(completed)')
    expect(await readFile(join(folder.work, 'a.txt'), 'utf8')).to.equal('written by a tool')
  })

  it('writes nothing where its user denies it, and the model learns why', async () => {
    await using folder = await openFolder()
    const { out } = await folder.run('--deny-all', 'exec', writeIn(join(folder.work, 'a.txt')))
    expect(out).to.contain('session/request_permission').and.contain('the user denied the call')
    await readFile(join(folder.work, 'a.txt')).then(
      () => expect.fail('the file was written'),
      error => expect(error.code).to.equal('ENOENT')
    )
  })

  it('continues a session with another process, and switches its mode', async () => {
    await using folder = await openFolder()
    const begun = await folder.run('sessions', 'new')
    expect(begun.out).to.match(/sess_[0-9a-f]{32}/)
    expect((await folder.run('--ttl', '1', 'first words')).out).to.contain('You said: first words')
    const plan = await folder.run('set-mode', 'plan')
    expect(plan.code, plan.out).to.equal(0)
    expect((await folder.run('--ttl', '1', 'more words')).out).to.contain('You said: more words (turn 2)')
    const history = await folder.run('sessions', 'history')
    expect(history.out).to.contain('first words').and.contain('more words')
  })

  it('sees why a turn failed', async () => {
    await using folder = await openFolder()
    const { code, out } = await folder.run('exec', '/fail rate_limited')
    expect(code, out).to.not.equal(0)
    expect(out).to.match(/rate limit|RATE_LIMITED|too many/i)
  })
})
