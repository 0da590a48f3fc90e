import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'

const CANARY = 'canary7f3e'

/** Ways in which people give a credential to a program that they start. */
const WAYS: readonly (readonly string[])[] = [
  ['--api-key', CANARY],
  [`--api-key=${CANARY}`],
  [`--authToken=${CANARY}`],
  ['--token', `-${CANARY}`],
  [`TOKEN=${CANARY}`],
  ['run', '-e', `PLAIN_NAME=${CANARY}`, 'image'],
  [`--env=PGPASSWORD=${CANARY}`],
  ['--header', `Authorization: Bearer ${CANARY}`],
  [`--header=Authorization:Bearer ${CANARY}`],
  ['-H', `X-Custom: ${CANARY}`],
  ['-u', `me:${CANARY}`],
  [`postgres://me:${CANARY}@db.example/main`],
  [`https://api.example/mcp?key=${CANARY}`],
  [`{"apiKey":"${CANARY}","model":"m"}`],
  [`ghp_${CANARY}${'0'.repeat(20)}`],
  [`sk-proj-${CANARY}${'0'.repeat(20)}`],
]

describe('the secrets in the arguments of a tool server', () => {
  let home: string
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-args-'))
    const clients = WAYS.map((args, at) => ({ name: `server${at}`, command: 'x', args: [...args, '/data', '--port', '80'] }))
    await mkdir(home, { recursive: true })
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { clients } }))
  })
  after(() => rm(home, { recursive: true }))

  for (const command of [
    ['config', 'show'],
    ['config', 'show', '--json'],
    ['config', 'show', 'mcp.clients', '--json'],
  ])
    it(`do not appear in svc ${command.join(' ')}, which shows the other arguments`, async () => {
      const { code, out, err } = await runSvc([...command, '--config', 'svc.config.json'], { home, share: true })
      expect({ code, err }).to.deep.equal({ code: 0, err: '' })
      expect(out).to.not.contain(CANARY)
      expect(out).to.contain('--api-key').and.contain('X-Custom').and.contain('/data').and.contain('db.example/main')
    })

  it('do not appear in svc mcp list --json', async () => {
    const { code, out } = await runSvc(['mcp', 'list', '--json', '--config', 'svc.config.json'], { home, share: true })
    expect(code).to.equal(0)
    expect(out).to.not.contain(CANARY)
    expect(out).to.contain('/data')
  })

  it('do not appear in what svc config check says of an argument of another type', async () => {
    const clients = [{ name: 'a', command: 'x', args: ['--token', { value: CANARY }], env: { PIN: 7351 } }]
    await writeFile(join(home, 'wrong.json'), JSON.stringify({ mcp: { clients } }))
    const { code, out, err } = await runSvc(['config', 'check', '--config', 'wrong.json'], { home, share: true })
    expect(code).to.equal(1)
    expect(out + err)
      .to.contain('mcp.clients')
      .and.not.contain('7351')
      .and.not.contain(CANARY)
  })
})
