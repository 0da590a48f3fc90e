/** @typedef {import('@svc/core').CallContext} CallContext */
/** @typedef {import('@svc/core/contracts').Conversations} Conversations */
/** @typedef {import('@svc/core/contracts').Workflows} Workflows */
/** @typedef {{ id: string, owner: string, messages: number, updated_at: string }} ConversationItem */
/** @typedef {{ id: string, workflow: string, status: string, progress: number, waiting_for: string[], updated_at: string }} RunItem */
/** @typedef {{ conversations: readonly ConversationItem[], runs: readonly RunItem[] }} Items */

/**
 * Returns the recent conversations and runs of the caller. Both services filter by `ctx.principal`.
 *
 * @type {(given: { conversations: Conversations, workflows: Workflows }, limit: number, ctx: CallContext) => Promise<Items>}
 */
export async function recentItems({ conversations, workflows }, limit, ctx) {
  const [talks, runs] = await Promise.all([conversations.list({ limit }, ctx), workflows.runs({ limit }, ctx)])
  return {
    conversations: talks.conversations.map(({ id, owner, messageCount, updatedAt }) => ({
      id,
      owner,
      messages: messageCount,
      updated_at: updatedAt,
    })),
    runs: runs.runs.map(({ id, workflow, status, progress, waiting, updatedAt }) => ({
      id,
      workflow,
      status,
      progress,
      waiting_for: waiting.map(({ node, ask }) => ask?.message ?? node),
      updated_at: new Date(updatedAt).toISOString(),
    })),
  }
}
