import type { SvcError } from '@svc/core'
import { ensureHome } from '@svc/core/processes'
import type { Lock } from '@svc/plugin-set'
import { startInnerHost } from '../inner-host.ts'
import { problemsOf } from '../report-error.ts'
import { findSettings, here } from '../settings.ts'

/**
 * Why `svc serve` cannot start with what is installed, or with `installed`: a host is started once in this process, without what would listen. Each plugin has
 * `host.setup_timeout_ms` for it, as there.
 */
export async function startProblems(config?: string, installed?: Lock): Promise<SvcError[]> {
  const place = { ...here(), ...(installed ? { installed } : {}) }
  try {
    const settings = await findSettings(config === undefined ? {} : { config }, place)
    await using _host = await startInnerHost(settings, ensureHome())
    return []
  } catch (error) {
    return problemsOf(error)
  }
}
