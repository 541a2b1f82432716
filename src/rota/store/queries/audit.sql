-- name: audit_listed
SELECT a.id, a.at, a.actor, a.action, a.subject, a.before, a.after, a.address, a.request FROM audit a
WHERE a.namespace = :namespace AND a.id PAST :position AND a.at >= :since AND a.at < :until
  AND (CAST(:actor AS text) IS NULL OR a.actor = :actor) AND (CAST(:subject AS text) IS NULL OR a.subject = :subject)
  AND (CAST(:action AS text) IS NULL OR a.action = :action OR a.action LIKE CAST(:action AS text) || '.%')
ORDER BY a.id WAY LIMIT :most
