import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost, toolKit } from '@svc/testing'
import { expect } from 'chai'

async function open(name: string) {
  const host = await testHost([new URL('..', import.meta.url)])
  return { name, tool: host.slot(Tools).get(name)!, close: () => host.close() }
}

async function call(name: string, args: Parameters<Tool['call']>[0]) {
  const { tool, close } = await open(name)
  try {
    return await tool.call(args, systemContext(new AbortController().signal))
  } finally {
    await close()
  }
}

const convert = async (time: string, from_zone: string | undefined, to_zone: string) => {
  const { structured } = await call('convert_time', { time, from_zone, to_zone })
  const { from, to, note } = structured as { from: { time: string }; to: { time: string; weekday: string }; note?: string }
  return { from: from.time, to: to.time, weekday: to.weekday, note }
}
const refusal = (work: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  work.then(
    () => expect.fail('expected an error'),
    (error: Error) => error
  )

describe('current_time, by the tool kit', () => {
  const cases = toolKit(() => open('current_time'), {
    good: [{ args: {} }, { args: { time_zone: 'Asia/Kathmandu' } }, { args: { time_zone: 'utc' } }],
    bad: [
      { args: { time_zone: 'Europe/Berln' }, message: /Europe\/Berlin/ },
      { args: { time_zone: '' } },
      { args: { zone: 'UTC' } },
      { args: { time_zone: 7 } },
    ],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describe('convert_time, by the tool kit', () => {
  const cases = toolKit(() => open('convert_time'), {
    good: [
      { args: { time: '2026-07-01 12:00', from_zone: 'UTC', to_zone: 'Asia/Tokyo' } },
      { args: { time: '2026-07-01T12:00Z', to_zone: 'Europe/Paris' } },
    ],
    bad: [
      { args: { time: 'tomorrow', from_zone: 'UTC', to_zone: 'UTC' }, message: /2026-03-29T14:30/ },
      { args: { time: '2026-07-01T12:00', to_zone: 'UTC' }, message: /from_zone/ },
      { args: { time: '2026-02-29', from_zone: 'UTC', to_zone: 'UTC' }, message: /28 days/ },
      { args: { time: '2026-13-01', from_zone: 'UTC', to_zone: 'UTC' }, message: /month 13/ },
      { args: { time: '2026-01-01T24:00', from_zone: 'UTC', to_zone: 'UTC' }, message: /23:59:59/ },
      { args: { time: '2026-01-01T12:00+25:00', to_zone: 'UTC' }, message: /offset/ },
      { args: { time: '0000-01-01', from_zone: 'UTC', to_zone: 'UTC' }, message: /1000/ },
      { args: { time: '2026-07-01T12:00Z', to_zone: 'Mars/Olympus' }, message: /unknown time zone "Mars\/Olympus"/ },
      { args: {} },
    ],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describe('tools-time', () => {
  it('returns the current time', async () => {
    const before = Math.floor(Date.now() / 1000)
    const { structured, content } = await call('current_time', { time_zone: 'America/St_Johns' })
    const shown = structured as { time: string; utc: string; time_zone: string; weekday: string }
    expect(Date.parse(shown.time) / 1000).to.be.within(before, Date.now() / 1000)
    expect(Date.parse(shown.utc)).to.equal(Date.parse(shown.time))
    expect(content).to.deep.equal([{ type: 'text', text: `${shown.weekday}, ${shown.time} (America/St_Johns)` }])
  })

  it('suggests the zone of a city', async () => {
    expect((await refusal(call('current_time', { time_zone: 'New York' }))).message).to.include('America/New_York')
  })

  it('converts in winter and in summer', async () => {
    expect(await convert('2026-01-15T12:00', 'America/New_York', 'Europe/Berlin')).to.include({ to: '2026-01-15T18:00:00+01:00' })
    expect(await convert('2026-07-15T12:00', 'America/New_York', 'Europe/Berlin')).to.include({ to: '2026-07-15T18:00:00+02:00' })
    // Two weeks in which only one of them has changed its clocks.
    expect(await convert('2026-03-15T12:00', 'America/New_York', 'Europe/Berlin')).to.include({ to: '2026-03-15T17:00:00+01:00' })
  })

  it('converts across the date line, and with offsets of 45 minutes', async () => {
    expect(await convert('2026-12-31T23:30', 'Pacific/Kiritimati', 'Asia/Kathmandu')).to.include({
      to: '2026-12-31T15:15:00+05:45',
      weekday: 'Thursday',
    })
  })

  it('shifts a skipped time forward, with a note', async () => {
    const moved = await convert('2026-03-29T02:30', 'Europe/Berlin', 'UTC')
    expect(moved).to.include({ from: '2026-03-29T03:30:00+02:00', to: '2026-03-29T01:30:00+00:00' })
    expect(moved.note).to.include('put forward')
  })

  it('uses the first of two equal local times, with a note', async () => {
    const first = await convert('2026-10-25T02:30', 'Europe/Berlin', 'UTC')
    expect(first).to.include({ to: '2026-10-25T00:30:00+00:00' })
    expect(first.note).to.include('put back')
    expect(await convert('2026-10-25T03:00', 'Europe/Berlin', 'UTC')).to.deep.include({
      to: '2026-10-25T02:00:00+00:00',
      note: undefined,
    })
  })

  it('shifts a day that a zone skipped', async () => {
    expect(await convert('2011-12-30T12:00', 'Pacific/Apia', 'UTC')).to.include({ from: '2011-12-31T12:00:00+14:00' })
  })

  it('prefers an offset in the text to from_zone', async () => {
    expect(await convert('2026-07-01T12:00:00.5-0330', 'Asia/Tokyo', 'UTC')).to.include({
      from: '2026-07-02T00:30:00+09:00',
      to: '2026-07-01T15:30:00+00:00',
    })
  })
})
