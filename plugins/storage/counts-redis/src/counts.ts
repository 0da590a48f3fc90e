import { codeOf, type Log } from '@svc/core'
import type { Counted, Counts, Redis } from '@svc/core/contracts'
import { checkCount } from '@svc/storage-kit'

/**
 * Counts a hit in all windows, or in none if one is full, by the clock of Redis: as `hit` of `@svc/storage-kit` does. The value of the
 * key is a list of windows: start in Unix milliseconds, length, and number of hits. ARGV has length and limit of each window. Returns 1
 * or 0, then count, end and rest of each window.
 */
const COUNT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = cjson.decode(redis.call('GET', KEYS[1]) or '[]')
local windows, isFull = {}, false
for at = 1, #ARGV / 2 do
  local ms, limit, stored = tonumber(ARGV[2 * at - 1]), tonumber(ARGV[2 * at]), before[at]
  local window = { now, ms, 0 }
  if stored then
    -- a clock that was set back must not extend a window
    local began = math.min(stored[1], now)
    if began + math.min(ms, stored[2]) > now then window = { began, ms, stored[3] } end
  end
  windows[at] = window
  isFull = isFull or window[3] >= limit
end

local after, isChanged = {}, not isFull
for at = 1, math.max(#before, isFull and 0 or #windows) do
  local window = windows[at]
  if window and not isFull then
    window[3] = window[3] + 1
    after[at] = window
  elseif window and window[3] > 0 then
    -- a refused hit begins no window; it can only change the length of running ones
    isChanged = isChanged or window[2] ~= before[at][2]
    after[at] = window
  else
    after[at] = before[at]
  end
end
if isChanged then
  local ends = 0
  for _, window in ipairs(after) do ends = math.max(ends, window[1] + window[2]) end
  redis.call('SET', KEYS[1], cjson.encode(after), 'PX', math.max(1, ends - now))
end

local reply = { isFull and 0 or 1 }
for _, window in ipairs(windows) do
  table.insert(reply, window[3])
  table.insert(reply, window[1] + window[2])
  table.insert(reply, window[1] + window[2] - now)
end
return reply
`

/** Counts in Redis; throws while it fails. */
export function createCounts(redis: Redis): Counts {
  return {
    async count(key, windows, ctx) {
      checkCount(key, windows)
      const args = windows.flatMap(({ ms, limit }) => [ms, limit])
      return countedOf((await redis.run(COUNT, [`counts:${key}`], args, ctx)) as readonly number[])
    },
  }
}

function countedOf([counted, ...rest]: readonly number[]): Counted {
  const windows = Array.from({ length: rest.length / 3 }, (_, at) => {
    const [count = 0, endsAt = 0, leftMs = 0] = rest.slice(3 * at)
    return { count, endsAt, leftMs }
  })
  return { counted: counted === 1, windows }
}

const LOST = new Set(['STORE_UNAVAILABLE', 'STORE_UNSURE'])

/** All servers share the counts of the store, so a limit stays exact there. A hit of which Redis lost the answer counts in both. */
export function withFallback(counts: Counts, store: Counts, log: Log): Counts {
  let isLost = false
  const report = (now: boolean, err?: unknown) => {
    if (now && !isLost) log.warn({ err }, 'counts in the store: Redis fails')
    if (!now && isLost) log.info({}, 'counts in Redis again')
    isLost = now
  }
  return {
    async count(key, windows, ctx) {
      try {
        const counted = await counts.count(key, windows, ctx)
        report(false)
        return counted
      } catch (error) {
        if (!LOST.has(codeOf(error) ?? '')) throw error
        report(true, error)
        return store.count(key, windows, ctx)
      }
    },
  }
}
