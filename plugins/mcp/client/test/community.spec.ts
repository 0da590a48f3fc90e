import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ProcessSandbox } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { openCommandHost } from './support/commands.ts'
import { community, hostile, openClientHost } from './support/client-host.ts'
import { describeWith, skipBecause } from '../../../../test/support/needs.ts'

const SANDBOX = { name: 'sandbox-process', use: new URL('../../../sandbox/process/', import.meta.url) }
/** Cases that need bubblewrap and its namespaces: without them they are left out, and the report says why. */

describe('tool servers as npm has them', () => {
  let folder: string
  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-mcp-')))
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'data', 'note.txt'), 'remember the milk')
    await writeFile(join(folder, 'other.txt'), 'not yours')
  })
  after(() => rm(folder, { recursive: true, force: true }))
  const data = () => join(folder, 'data')

  it('read and write files, and keep to their folder', async () => {
    await using clientHost = await openClientHost([{ name: 'files', ...community('filesystem', data()) }])
    expect((await clientHost.clients.tools('files', testContext())).map(tool => tool.name)).to.include.members([
      'read_text_file',
      'write_file',
    ])
    expect(await clientHost.say('files', 'read_text_file', { path: join(data(), 'note.txt') })).to.equal('remember the milk')
    await clientHost.say('files', 'write_file', { path: join(data(), 'new.txt'), content: 'written' })
    expect(await readFile(join(data(), 'new.txt'), 'utf8')).to.equal('written')
    expect(await clientHost.say('files', 'read_text_file', { path: join(folder, 'other.txt') })).to.include('denied')
  })

  it('keep a memory, and do everything', async () => {
    await using clientHost = await openClientHost([
      { name: 'memory', ...community('memory'), env: { MEMORY_FILE_PATH: join(data(), 'memory.jsonl') } },
      { name: 'everything', ...community('everything') },
    ])
    await clientHost.say('memory', 'create_entities', {
      entities: [{ name: 'Ada', entityType: 'person', observations: ['counts'] }],
    })
    expect(await clientHost.say('memory', 'search_nodes', { query: 'Ada' })).to.include('counts')
    expect(await clientHost.say('everything', 'echo', { message: 'hi' })).to.equal('Echo: hi')
    expect(await clientHost.say('everything', 'get-tiny-image')).to.include('image')
  })

  describeWith('bubblewrap', 'in the process sandbox', () => {
    it('write where they may, and nowhere else', async () => {
      const command = community('filesystem', folder)
      const sandbox_config = { allowed_paths: [data()] }
      await using clientHost = await openClientHost([{ name: 'files', ...command, sandbox: true, sandbox_config }], [SANDBOX])
      expect(
        await clientHost.say('files', 'read_text_file', { path: join(folder, 'other.txt') }),
        'its own argument can be read'
      ).to.equal('not yours')
      await clientHost.say('files', 'write_file', { path: join(data(), 'boxed.txt'), content: 'written' })
      expect(await readFile(join(data(), 'boxed.txt'), 'utf8')).to.equal('written')
      expect(await clientHost.say('files', 'write_file', { path: join(folder, 'other.txt'), content: 'mine' })).to.match(
        /EROFS|EACCES|denied|restricted/
      )
      expect(await readFile(join(folder, 'other.txt'), 'utf8')).to.equal('not yours')
    })

    it('are connection_refused where the sandbox cannot show what they are to see, or has no such program', async () => {
      const sandbox_config = { allowed_paths: [join(folder, 'nowhere')] }
      await using clientHost = await openClientHost(
        [
          { name: 'pathless', ...hostile(), retry_attempts: 0, sandbox: true, sandbox_config },
          { name: 'none', command: 'no-such-program', retry_attempts: 0, sandbox: true },
        ],
        [SANDBOX]
      )
      for (const name of ['pathless', 'none'])
        expect(await clientHost.say(name, 'echo'), name).to.equal('MCP_CALL_FAILED connection_refused')
      const { lastError } = await clientHost.info('pathless')
      expect(lastError?.message).to.include('sandbox').and.not.include(folder)
      await using host = await openCommandHost([{ name: 'pathless', ...hostile(), sandbox: true, sandbox_config }], [SANDBOX])
      expect((await host.run('test', 'pathless')).out).to.match(/✗ start .*nowhere".*it does not exist/)
    })

    it('are said to have needed too much memory where they did, and come back', async function () {
      await using clientHost = await openClientHost(
        [{ name: 'greedy', ...hostile(), sandbox: true, sandbox_config: { memory_limit: '100M' } }],
        [SANDBOX]
      )
      const { memory } = await clientHost.host.service(ProcessSandbox).probe(testContext())
      if (!memory?.startsWith('cgroup')) return skipBecause(this, 'this machine lets svc make no control groups')
      expect(await clientHost.say('greedy', 'big', { bytes: 400_000_000 })).to.equal('MCP_CALL_FAILED connection_refused')
      const { lastError } = await clientHost.until('greedy', ({ lastError: error }) => error !== undefined)
      expect(lastError?.message).to.include('more memory than sandbox_config.memory_limit')
      expect(await clientHost.say('greedy', 'echo', { text: 'again' })).to.equal('again')
    })

    it('see neither the processes of this machine nor the variables of svc', async () => {
      await using clientHost = await openClientHost(
        [{ name: 'one', ...hostile(), env: { OWN: 'x' }, sandbox: true, sandbox_config: { memory_limit: '1G' } }],
        [SANDBOX]
      )
      expect(JSON.parse(await clientHost.say('one', 'pid')))
        .to.have.property('pid')
        .that.is.below(100)
      const env = JSON.parse(await clientHost.say('one', 'env')) as Record<string, string>
      expect(env)
        .to.include({ OWN: 'x', HOME: '/tmp', TMPDIR: '/tmp' })
        .and.not.have.any.keys('USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG')
      expect(JSON.stringify(env)).to.not.include(clientHost.home)
    })
  })
})
