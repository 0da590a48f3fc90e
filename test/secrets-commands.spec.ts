// Not a unit test: runs commands.
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { newHome } from './support/service.ts'

const VALUE = 'a-value-that-no-command-shows'
const newKey = () => randomBytes(32).toString('base64')

interface Listed {
  readonly name: string
  readonly state: string
  readonly key_id: string
}

describe('svc secrets', function () {
  this.timeout(120_000)
  let home: string
  const svc = (args: readonly string[], input?: string) =>
    runSvc(['secrets', ...args], { home, ...(input === undefined ? {} : { input }) })
  const fine = async (args: readonly string[], input?: string) => {
    const { code, out, err } = await svc(args, input)
    expect(code, err).to.equal(0)
    expect(out + err).to.not.include(VALUE)
    return { out, err }
  }
  const list = async () => (JSON.parse((await fine(['list', '--json'])).out) as { secrets: Listed[] }).secrets
  const states = async () => (await list()).map(({ name, state }) => `${name} ${state}`)
  const writeKeys = (...keys: string[]) => writeFile(join(home, 'keys'), `${keys.join('\n')}\n`, { mode: 0o600 })
  const [first, second] = [newKey(), newKey()]

  beforeEach(async () => {
    home = await newHome()
    await writeKeys(first)
    const config = {
      plugins: [],
      secrets: { key_file: join(home, 'keys') },
      providers: { acme: { type: 'openai', base_url: 'http://127.0.0.1:9/v1', api_key: '${secret:acme_key}' } },
    }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    await fine(['set', 'acme_key'], VALUE)
    await fine(['set', 'other'], VALUE)
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('remove deletes a secret, warns if the configuration refers to it, and names an unknown one', async () => {
    const other = await fine(['remove', 'other'])
    expect([other.out, other.err]).to.deep.equal(['removed other\n', ''])
    const used = await fine(['remove', 'acme_key', '--json'])
    expect(JSON.parse(used.out)).to.deep.equal({ removed: 'acme_key' })
    expect(used.err).to.include('providers.acme.api_key refers to it')
    expect(await list()).to.deep.equal([])
    for (const [name, problem] of [
      ['acme_key', 'SECRET_UNKNOWN'],
      ['constructor', 'SECRET_UNKNOWN'],
      ['../keys', 'SECRET_INVALID'],
    ] as const) {
      const { code, out, err } = await svc(['remove', name])
      expect([code, out], err).to.deep.equal([1, ''])
      expect(err).to.include(problem).and.include(`"${name}"`)
    }
  })

  it('rotate --key seals all values with the first key, and the earlier key can be removed then', async () => {
    const [before] = await list()
    await writeKeys(second)
    expect(await states(), 'without the key of the values').to.deep.equal(['acme_key unreadable', 'other unreadable'])
    const failed = await svc(['rotate', '--key'])
    expect([failed.code, failed.out]).to.deep.equal([1, ''])
    expect(failed.err).to.include('SECRET_UNREADABLE')
    await writeKeys(second, first)
    expect((await fine(['rotate', '--key'])).out).to.match(/^2 secrets sealed with the key \S+; earlier keys can be removed\n$/)
    await writeKeys(second)
    expect(await states()).to.deep.equal(['acme_key ready', 'other ready'])
    const [after] = await list()
    expect(after!.key_id).to.not.equal(before!.key_id)
    expect(JSON.parse((await fine(['rotate', '--key', '--json'])).out)).to.deep.equal({ resealed: 0, key_id: after!.key_id })
  })

  it('rotate takes a known name or --key: not both, and not neither', async () => {
    for (const args of [['rotate'], ['rotate', 'other', '--key']]) {
      const { code, out, err } = await svc(args, VALUE)
      expect([code, out], args.join(' ')).to.deep.equal([2, ''])
      expect(err).to.include('COMMAND_LINE_INVALID').and.include('name one secret, or pass --key')
    }
    const unknown = await svc(['rotate', 'unknown'], VALUE)
    expect([unknown.code, unknown.out]).to.deep.equal([1, ''])
    expect(unknown.err).to.include('SECRET_UNKNOWN')
    expect(await states()).to.deep.equal(['acme_key ready', 'other ready'])
  })

  it('set and rotate refuse a value on the command line, do not repeat it, and store nothing', async () => {
    const before = await list()
    for (const args of [
      ['set', 'third', VALUE],
      ['set', 'other', VALUE],
      ['rotate', 'other', VALUE],
    ]) {
      const { code, out, err } = await svc(args, 'a-value-of-standard-input')
      expect([code, out], args.join(' ')).to.deep.equal([2, ''])
      expect(err).to.include('COMMAND_LINE_INVALID').and.include('standard input').and.not.include(VALUE)
    }
    expect(await list()).to.deep.equal(before)
  })
})
